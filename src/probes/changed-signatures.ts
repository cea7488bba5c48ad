import type { Architecture, CallersFrame } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { type DebugInfo, type Die, DW_AT, through } from '../dwarf/index.js';
import { type CodeAddress, type ElfFile, KeptAnswers } from '../elf/index.js';
import { CodeMap, type FunctionCode } from '../target/unwind/index.js';
import type { Shape } from '../values/index.js';
import type { Described } from './described-places.js';
import type { HiddenRegisters } from './passing-registers.js';

/**
 * Functions that are not called as they are declared. Nobody outside of a program calls its internal functions, so
 * optimisers change their arguments:
 *
 *     gcc    drops them, and passes parts of what they point to (IPA-SRA, IPA-CP, function splitting): such a
 *            function's symbol has a suffix
 *     LLVM   drops them (DW_CC_nocall says so), and passes up to three parts of what a pointer leads to
 *            (ArgumentPromotion.cpp). That is marked by some versions only.
 *
 * So a function whose declared arguments fit in registers may have others on the stack. Its code says whether it has.
 */
export class ChangedSignatures {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  readonly #debug: DebugInfo | undefined;
  /** A function begins there that surely takes no argument on the stack. */
  readonly #inRegisters: (address: Addr) => boolean;
  /** Bytes of a function that is followed. */
  readonly #most: number;
  #code: CodeMap | undefined;
  /** That it is not sure; what is being asked is not. */
  readonly #unsure: KeptAnswers;

  constructor(
    program: { readonly elf: ElfFile; readonly arch: Architecture; readonly debug: DebugInfo | undefined },
    inRegisters: (address: Addr) => boolean,
    most = Number.POSITIVE_INFINITY,
  ) {
    this.#elf = program.elf;
    this.#arch = program.arch;
    this.#debug = program.debug;
    this.#inRegisters = inRegisters;
    this.#most = most;
    this.#unsure = new KeptAnswers(program.elf, `stack-${program.debug ? 'dwarf' : 'code'}-${most}`);
  }

  /** Keeps what was found, for the next start. */
  keep(): void {
    this.#unsure.keep();
  }

  /**
   * The code of the function shows that it takes nothing on the stack. It does not touch its caller's frame, nor does
   * what it jumps to.
   */
  takesNoneOnStack(address: Addr): boolean {
    const code = this.#elf.codes.toCode(address);
    return this.#unsure.of(code, unsure, () => (this.#looksSure(address) ? undefined : unsure)) === undefined;
  }

  #looksSure(address: Addr): boolean {
    this.#code ??= CodeMap.of(this.#elf, this.#debug);
    const low = this.#elf.codes.toCode(address);
    const code = this.#code.functionAt(low);
    if (code?.low !== low || (code.ranges[0]?.bytes.length ?? 0) > this.#most) return false;
    const frame = callersFrameOf(this.#elf, this.#arch, code);
    if (!frame) return false;
    const { isUsed, jumps, jumpsAnywhere } = frame;
    return !isUsed && !jumpsAnywhere && jumps.every(this.#inRegisters);
  }
}

const unsure = 'it may have arguments on the stack';

/** DW_CC_nocall: "does not obey standard calling conventions" (DWARF 5, 3.3.1.1). */
const NOT_CALLED_AS_DECLARED = 3;

/** gcc made it of another function. */
export function isClone(symbol = ''): boolean {
  return /\.(isra|part|constprop)(\.|$)/.test(symbol);
}

/** What the compiler says to have changed of a function: its arguments, or its result as well. */
export function changesOf(die: Die, symbol = ''): { readonly arguments: boolean; readonly result: boolean } {
  const convention = through(die, (at) => at.number(DW_AT.calling_convention));
  const isUnlike = convention === NOT_CALLED_AS_DECLARED;
  return { arguments: isUnlike || isClone(symbol), result: isUnlike || /\.(isra|part)(\.|$)/.test(symbol) };
}

/** What LLVM passes at most in place of a pointer. */
const mostParts = 3;
const WORD = 8;

/**
 * The most words that LLVM may pass in place of arguments, `described` as debug info has them at the entry. One that is
 * in memory there, while others are not, may be on the stack: as many as never fit.
 */
export function mostWords(types: readonly Shape[], described: readonly Described[], hidden: HiddenRegisters): number {
  const inFrame = described.filter(({ kind }) => kind === 'frame').length;
  if (inFrame > 0 && inFrame < described.length) return Number.POSITIVE_INFINITY;
  const captures = mostParts * (hidden.most - hidden.result);
  return types.reduce((sum, type, i) => sum + wordsFor(type, described[i]), hidden.result + captures);
}

function wordsFor({ kind, size = 3 * WORD }: Shape, described: Described | undefined): number {
  const words = Math.ceil(size / WORD);
  const own = words > 2 ? 1 : words;
  const isNumber =
    kind === 'integer' || kind === 'bool' || kind === 'char' || kind === 'enumeration' || kind === 'float';
  return isNumber || isWhole(described, size) ? own : mostParts * own;
}

/** What the debug info still finds has not been replaced. */
function isWhole(described: Described | undefined, size: number): boolean {
  if (described?.kind !== 'place') return described?.kind === 'frame';
  const { place } = described;
  if (place.kind !== 'registers') return place.kind === 'pointer';
  return place.parts.reduce((sum, part) => sum + part.size, 0) >= size;
}

const found = new WeakMap<ElfFile, Map<CodeAddress, CallersFrame>>();

/**
 * What a function's code does with the frame of its caller. Several questions ask that, and its code is followed once.
 * Undefined where no code can be followed.
 */
export function callersFrameOf(elf: ElfFile, arch: Architecture, code: FunctionCode): CallersFrame | undefined {
  const known = found.get(elf) ?? new Map<CodeAddress, CallersFrame>();
  found.set(elf, known);
  const frame = known.get(code.low) ?? arch.frames?.code?.analyse(code.ranges).callersFrame();
  if (frame) known.set(code.low, frame);
  return frame;
}
