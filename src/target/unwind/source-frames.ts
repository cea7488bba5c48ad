import { type Addr, addr } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import { type DebugInfo, type Die, demangle, functionName, functionsAt } from '../../dwarf/index.js';
import type { ElfFile } from '../../elf/index.js';
import type { StackEntry } from '../../trace/index.js';
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

const MAX_CACHED = 0x1_0000;

/** An address in the code that a frame runs: what a caller returns to may be the next function already. */
export function codeAt({ pc, exact }: Pick<Frame, 'pc' | 'exact'>): Addr {
  return exact ? pc : addr(pc - 1n);
}

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
  of(frame: Pick<Frame, 'pc' | 'exact'> & Partial<Pick<Frame, 'image'>>): readonly SourceFrame[] {
    const at = codeAt(frame);
    const { elf, debug } = this.#describing(frame.image);
    const known = madeOnce(this.#known, elf, () => new Map());
    let found = known.get(at);
    if (found === undefined) {
      found = describe(at, elf, debug);
      if (known.size >= MAX_CACHED) known.clear();
      known.set(at, found);
    }
    return found;
  }

  /** The same without what is inlined into what. */
  entriesOf(frame: Parameters<SourceFrames['of']>[0]): StackEntry[] {
    return this.of(frame).map(({ function: name, file, line }) => ({ function: name, file, line }));
  }

  /** The same without lines, which a table of a whole unit says: each with the file that declares it. */
  functionsOf(frame: Pick<Frame, 'pc' | 'exact' | 'image'>): readonly SourceFunction[] {
    const at = codeAt(frame);
    const { elf, debug } = this.#describing(frame.image);
    const functions = debug === undefined ? [] : functionsAt(debug, at);
    if (debug === undefined || functions.length === 0) return describe(at, elf, undefined);
    return functions.map((die) => ({ function: functionName(die), file: debug.declarationOf(die).file, die }));
  }

  #describing(image: Frame['image']): Pick<CodeImage, 'elf' | 'debug'> {
    return image === undefined || image.elf === this.elf ? { elf: this.elf, debug: this.#debug } : image;
  }
}

/** A label of data names no function. */
function isCode({ code }: ElfFile, at: Addr): boolean {
  return code.length === 0 || code.some(({ address, memorySize }) => at >= address && at - address < memorySize);
}

function describe(at: Addr, elf: ElfFile, debug: DebugInfo | undefined): readonly SourceFrame[] {
  const { functions = [], position } = debug?.frameAt(at) ?? {};
  if (functions.length > 0)
    return functions.map(({ name, inlined, position: here }) => {
      return { function: name, file: here?.file, line: here?.line || undefined, inlined };
    });
  const symbol = isCode(elf, at) ? elf.symbols.at(at) : undefined;
  const name = symbol && symbol.type !== 'object' ? demangle(symbol.name, elf.budget) : undefined;
  return [{ function: name, file: position?.file, line: position?.line, inlined: false }];
}
