import { type Addr, addr } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import { type DebugInfo, type Die, DW_AT, DW_TAG, demangle, functionName, rangesOf } from '../../dwarf/index.js';
import type { ElfFile } from '../../elf/index.js';
import type { CodeImage } from './code-image.js';
import type { Frame } from './frame.js';

/** One function in the source. A frame has as many of them as were inlined into each other at its pc. */
export interface SourceFrame {
  readonly function: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** Inlined into the next one out. */
  readonly inlined: boolean;
}

interface SourceFunction extends Pick<SourceFrame, 'function' | 'file'> {
  /** Of the function, or of its inlined copy; undefined without debug info. */
  readonly die?: Die;
}

/** Nested deeper than the inlining of any compiler. */
const MAX_DEPTH = 256;
const MAX_CACHED = 0x1_0000;

/**
 * Names the functions of frames, those inlined into them, and source lines. Libraries and further programs describe
 * their own frames.
 */
export class SourceFrames {
  /** The program. */
  readonly elf: ElfFile;
  readonly #debug: DebugInfo | undefined;
  readonly #known = new Map<ElfFile, Map<bigint, readonly SourceFrame[]>>();

  constructor(elf: ElfFile, debug: DebugInfo | undefined) {
    this.elf = elf;
    this.#debug = debug;
  }

  /** The innermost function first; at least one. A caller's line is that of the call. */
  of({ pc, exact, image }: Pick<Frame, 'pc' | 'exact'> & Partial<Pick<Frame, 'image'>>): readonly SourceFrame[] {
    const at = exact ? pc : addr(pc - 1n);
    const { elf, debug } = this.#describing(image);
    const known = madeOnce(this.#known, elf, () => new Map());
    let found = known.get(at);
    if (found === undefined) {
      found = describe(at, elf, debug);
      if (known.size >= MAX_CACHED) known.clear();
      known.set(at, found);
    }
    return found;
  }

  /** The same without lines, which a table of a whole unit says: each with the file that declares it. */
  functionsOf({ pc, exact, image }: Pick<Frame, 'pc' | 'exact' | 'image'>): readonly SourceFunction[] {
    const at = exact ? pc : addr(pc - 1n);
    const { elf, debug } = this.#describing(image);
    const functions = debug === undefined ? [] : functionsAt(debug, at);
    if (debug === undefined || functions.length === 0) return describe(at, elf, undefined);
    return functions.map((die) => ({ function: functionName(die), file: debug.declarationOf(die).file, die }));
  }

  #describing(image: Frame['image']): Pick<CodeImage, 'elf' | 'debug'> {
    return image === undefined || image.elf === this.elf ? { elf: this.elf, debug: this.#debug } : image;
  }
}

/** `_end` and other marks are below all that lies above the program. */
function isCode({ code }: ElfFile, at: Addr): boolean {
  return code.length === 0 || code.some(({ address, memorySize }) => at >= address && at - address < memorySize);
}

function describe(at: Addr, elf: ElfFile, debug: DebugInfo | undefined): readonly SourceFrame[] {
  const info = debug?.functionAt(at);
  const position = debug?.lineAt(at);
  if (debug === undefined || info === undefined) {
    const symbol = isCode(elf, at) ? elf.symbols.at(at) : undefined;
    const name = symbol && symbol.type !== 'object' ? demangle(symbol.name, elf.budget) : undefined;
    return [{ function: name, file: position?.file, line: position?.line, inlined: false }];
  }
  const inlined = debug.attempt(info.die.unit, () => inlinedAt(info.die, elf.codes.toCode(at))) ?? [];
  const frames: SourceFrame[] = [];
  let { file, line }: { file: string | undefined; line: number | undefined } = {
    file: position?.file,
    line: position?.line,
  };
  // From the inside out: the place of each is where the one inside it was called.
  for (const die of inlined.reverse()) {
    frames.push({ function: functionName(die), file, line, inlined: true });
    const index = die.number(DW_AT.call_file);
    file = index === undefined ? undefined : debug.fileName(die.unit, index)?.path;
    line = die.number(DW_AT.call_line) || undefined;
  }
  frames.push({ function: info.name, file, line, inlined: false });
  return frames;
}

/** The functions of the program's that an address is in, the innermost first: those inlined there, and around them. */
export function functionsAt(debug: DebugInfo, at: Addr): readonly Die[] {
  const info = debug.functionAt(at);
  if (info === undefined) return [];
  const inlined = debug.attempt(info.die.unit, () => inlinedAt(info.die, debug.elf.codes.toCode(at))) ?? [];
  return [...inlined.reverse(), info.die];
}

/** The inlined functions at an address of a function, the outermost first. */
function inlinedAt(die: Die, at: number): Die[] {
  const found: Die[] = [];
  let inside: Die | undefined = die;
  for (let depth = 0; inside !== undefined && depth < MAX_DEPTH; depth++) {
    inside = childAt(inside, at);
    if (inside?.tag === DW_TAG.inlined_subroutine) found.push(inside);
  }
  return found;
}

function childAt(die: Die, at: number): Die | undefined {
  for (const child of die.children()) {
    if (child.tag !== DW_TAG.inlined_subroutine && child.tag !== DW_TAG.lexical_block) continue;
    if (rangesOf(child).some(({ low, high }) => at >= low && at < high)) return child;
  }
  return undefined;
}
