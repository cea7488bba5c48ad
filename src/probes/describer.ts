import type { Architecture, FloatPassing } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import {
  type DebugInfo,
  type Die,
  DW_AT,
  DW_TAG,
  linkageNameOf,
  nameOf,
  typeOf,
  unpackedChildren,
} from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { isLinuxProgram } from '../target/index.js';
import type { FunctionRef } from '../trace/index.js';
import { type Shape, Shapes } from '../values/index.js';
import {
  type Calling,
  type Convention,
  hiddenRegisters,
  isUntupled,
  placeArguments,
  placeResult,
  rustConvention,
  type ValuePlace,
} from './argument-places.js';
import { type BtfSignature, btfSignatures } from './btf-signature.js';
import { ChangedSignatures, changesOf, isClone, mostWords } from './changed-signatures.js';
import { type Described, describedPlace } from './described-places.js';
import type { Conditions } from './expressions/comparison.js';
import type { NamedFunction } from './function-names.js';

/** A parameter; or, for a function without debug info, an argument register. */
export interface FunctionArgument {
  readonly name: string;
  /** As DWARF spells it; undefined without debug info. */
  readonly type: string | undefined;
  /** The type of its bytes; undefined without debug info: a word. */
  readonly shape: Shape | undefined;
  readonly where: ValuePlace;
}

interface Signature {
  readonly arguments: readonly FunctionArgument[];
  /** Undefined for `()`, `!`, and without debug info. */
  readonly result: { readonly type: string; readonly shape: Shape; readonly where: ValuePlace } | undefined;
  /** An argument is, or may be, passed on the stack: its return address must stay unchanged. */
  readonly stackArguments: boolean;
  /** See `leavesScratch`; false where no debug info says what compiled it. */
  readonly scratchIsFree: boolean;
}

/** One function to probe, and everything that a hit at its entry or return needs to know. */
export interface FunctionProbe extends Signature {
  readonly address: Addr;
  readonly ref: FunctionRef;
  /** Bytes from the entry; 0 if the size is not known. */
  readonly size: number;
  /** Other functions that the linker folded into this address. */
  readonly aliases: readonly string[];
  /** The user insists, although this is why it is refused: its entries alone are traced. */
  readonly insisted?: string;
  /** Which calls are traced; undefined: all. */
  readonly when?: Conditions;
  /** Why nothing is known of its code, in words for the user. */
  readonly unread?: string;
}

/** How many argument registers are shown for a function without debug info. */
const rawArguments = 4;
const noNames: readonly string[] = [];

/**
 * What rustc itself makes between `alloc` and an allocator, without debug info. It takes four numbers at most, in
 * registers.
 */
const allocatorShim =
  /(^|_7___rustc\d+_)__r(ust|dl|g)_(alloc|dealloc|realloc|alloc_zeroed|alloc_error_handler|no_alloc_shim_is_unstable(_v2)?)$/;

/** Functions of more than so many bytes; in words for the user. */
export interface Unread {
  readonly above: number;
  why(size: number): string | undefined;
}

/** Turns functions into probes: what their arguments are, and where. */
export class Describer {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  /** No kernel. */
  readonly #isProgram: boolean;
  readonly #floats: FloatPassing | undefined;
  readonly #debug: DebugInfo | undefined;
  readonly #shapes: Shapes | undefined;
  /** Asked if DWARF does not say. */
  readonly #btf: ((symbol: string) => BtfSignature | undefined) | undefined;
  readonly #signatures: ChangedSignatures;
  readonly #unread: Unread | undefined;
  /** One list for all functions of which nothing is known. */
  readonly #raw: readonly FunctionArgument[];

  /** @param unread which functions' code is not followed */
  constructor(elf: ElfFile, arch: Architecture, debug: DebugInfo | undefined, unread?: Unread) {
    this.#elf = elf;
    this.#arch = arch;
    this.#isProgram = isLinuxProgram(elf);
    this.#floats = arch.floats?.({ flags: elf.flags, isProcess: this.#isProgram });
    this.#debug = debug;
    this.#btf = btfSignatures(elf, arch);
    this.#shapes = debug && new Shapes(debug);
    this.#signatures = new ChangedSignatures(
      { elf, arch, debug },
      (address) => this.inRegisters(address),
      unread?.above,
    );
    this.#unread = unread;
    this.#raw = arch.arguments.slice(0, rawArguments).map((register) => {
      const where: ValuePlace = { kind: 'registers', parts: [{ register, offset: 0, size: 8 }] };
      return { name: register, type: undefined, shape: undefined, where };
    });
  }

  /** Keeps what was found, for the next start. */
  keep(): void {
    this.#signatures.keep();
  }

  probe(fn: NamedFunction, folded: readonly NamedFunction[], key: number): FunctionProbe {
    const { address, size, name, instance, die } = fn;
    const declared = die && this.#attempt(die, (debug) => debug.declarationOf(die));
    const ref = { key, name, instance, address, file: declared?.file, line: declared?.line };
    const others = folded.flatMap((other) => (other.name === name ? [] : other.name));
    const aliases = others.length > 0 ? [...new Set(others)] : noNames;
    const typed = die && this.#attempt(die, () => this.#signature(fn, die));
    const unread = this.#unread?.why(size);
    const known = typed ?? this.#bare(address, fn.symbol);
    return { address, ref, size, aliases, ...known, ...(unread !== undefined && { unread }) };
  }

  /** A function begins there that certainly takes no argument on the stack. */
  inRegisters(address: Addr): boolean {
    const found = this.#debug?.functionAt(address);
    if (found === undefined) return this.#signatures.takesNoneOnStack(address);
    const { die, low } = found;
    if (low !== address) return false;
    const symbol = this.#elf.symbols.at(address)?.name ?? linkageNameOf(die) ?? nameOf(die);
    return this.#attempt(die, () => this.#signature({ address, symbol }, die))?.stackArguments === false;
  }

  #bare(address: Addr, symbol: string | undefined): Signature {
    const listed = symbol === undefined ? undefined : this.#btf?.(symbol);
    // No literal begins with a spread, see `engineChoices`.
    if (listed) return { result: undefined, scratchIsFree: false, ...listed };
    const isShim = symbol !== undefined && allocatorShim.test(symbol);
    // Other functions of a kernel without debug info are assembly, which is entered and left in many ways.
    const isCompiled = this.#isProgram || isClone(symbol);
    const stackArguments = !isShim && !(isCompiled && this.#signatures.takesNoneOnStack(address));
    return { arguments: this.#raw, result: undefined, stackArguments, scratchIsFree: isShim };
  }

  #signature(fn: Pick<NamedFunction, 'address' | 'symbol'>, die: Die): Signature {
    const shapes = this.#shapes as Shapes;
    const producer = producerOf(die);
    const mangled = /^_(R|ZN)/.test(linkageNameOf(die) ?? fn.symbol ?? '');
    const convention: Convention = producer === 'rustc' && mangled ? rustConvention(die) : 'c';
    const resultType = typeOf(die);
    const resultShape = resultType && shapes.of(resultType);
    const calling: Calling = { arch: this.#arch, convention, floats: this.#floats };
    const returned = resultShape && placeResult(calling, resultShape);
    const children = [...unpackedChildren(die)];
    const parameters = children.filter((child) => child.tag === DW_TAG.formal_parameter);
    const types = parameters.map((parameter) => shapes.of(typeOf(parameter)));
    const inMemory = returned ? returned.inMemory : false;
    const entry = die.unit.codes.toCode(fn.address);
    const own = nameOf(die) ?? '';
    const hidden = hiddenRegisters(this.#arch, own, children, entry, inMemory);
    const untupled = convention !== 'c' && isUntupled(own, types);
    const described = parameters.map((parameter, i) =>
      describedPlace(this.#arch, parameter, entry, types[i]?.size ?? 0),
    );
    const placed = placeArguments(calling, untupled ? types.slice(0, -1) : types, hidden, described);
    const changed = changesOf(die, fn.symbol);
    // LLVM takes arguments out that are not used, and passes those behind them in earlier registers.
    const removed =
      producer === 'gcc' ? -1 : parameters.findIndex((each, i) => types[i]?.size !== 0 && !each.has(DW_AT.location));
    const agrees =
      !changed.arguments && described.every((one, i) => one.kind !== 'place' || isSame(one.place, placed.places[i]));
    const variadic = children.some((child) => child.tag === DW_TAG.unspecified_parameters);
    return {
      arguments: parameters.map((parameter, i): FunctionArgument => {
        const shape = types[i] as Shape;
        const isSure = producer === 'gcc' || !isWithoutList(parameter);
        const isThere = removed < 0 || i < removed;
        const where = choose(described[i], placed.places[i], agrees && isThere, isSure);
        return { name: nameOf(parameter) ?? `arg${i}`, type: shape.name, shape, where };
      }),
      result:
        resultShape && returned && resultShape.size !== 0
          ? { type: resultShape.name, shape: resultShape, where: changed.result ? resultChanged : returned.place }
          : undefined,
      stackArguments:
        placed.stack ||
        variadic ||
        untupled ||
        ((changed.arguments ||
          // Line tables alone (the standard library's) do not name any.
          parameters.length === 0 ||
          // gcc says which functions it has changed.
          (producer !== 'gcc' && mostWords(types, described, hidden) > this.#arch.arguments.length)) &&
          !this.#signatures.takesNoneOnStack(fn.address)),
      scratchIsFree: leavesScratch(die),
    };
  }

  #attempt<T>(die: Die, read: (debug: DebugInfo) => T): T | undefined {
    const debug = this.#debug;
    return debug?.attempt(die.unit, () => read(debug));
  }
}

const resultChanged: ValuePlace = { kind: 'unavailable', why: 'the compiler may have left it out or changed it' };

/** If the optimiser changed a function's signature (it drops unused arguments), only the debug info is reliable. */
function choose(
  described: Described | undefined,
  placed: ValuePlace | undefined,
  agrees: boolean,
  isSure: boolean,
): ValuePlace {
  if (described?.kind === 'place')
    return isSure || !usesRegister(described.place) || isSame(described.place, placed) ? described.place : filledLater;
  if (described?.kind === 'frame' && placed && agrees) return placed;
  return described?.kind === 'nothing' ? { kind: 'unavailable', why: described.why } : { kind: 'unavailable' };
}

const filledLater: ValuePlace = {
  kind: 'unavailable',
  why: 'its debug info names one register for the whole function, which is not that of the calling convention',
};

/**
 * Its location has no list. LLVM gives such a one also where the function's first instructions, which belong to no
 * line, fill the register. gcc begins with what the caller has passed.
 */
function isWithoutList(parameter: Die): boolean {
  return parameter.block(DW_AT.location) !== undefined;
}

function usesRegister(place: ValuePlace): boolean {
  return place.kind === 'pointer' || (place.kind === 'registers' && place.parts.some(({ register }) => register));
}

function isSame(found: ValuePlace, placed: ValuePlace | undefined): boolean {
  const [a, b] = [found, placed].map((place) =>
    place?.kind === 'registers'
      ? place.parts.map(({ register }) => register).join()
      : place?.kind === 'pointer' && place.register,
  );
  return a === b;
}

/** The compiler of a function. */
function producerOf(die: Die): 'rustc' | 'clang' | 'gcc' | undefined {
  const text = die.unit.root.string(DW_AT.producer) ?? '';
  // rustc's names LLVM and itself: `clang LLVM (rustc version 1.96.0)`.
  if (text.includes('rustc')) return 'rustc';
  if (text.includes('clang')) return 'clang';
  return text.startsWith('GNU') ? 'gcc' : undefined;
}

/**
 * The code that calls a function certainly keeps nothing in scratch registers meanwhile. From -O2 on gcc does where it
 * knows that a function leaves one alone (-fipa-ra), with -flto across files.
 */
export function leavesScratch(die: Die): boolean {
  const producer = producerOf(die);
  if (producer !== 'gcc') return producer !== undefined;
  const options = (die.unit.root.string(DW_AT.producer) ?? '').split(' ');
  // Without any it was told not to name them; with debug info it had this one.
  if (!options.some((option) => /^-g/.test(option)) || options.some((option) => /^-flto/.test(option))) return false;
  const wanted = options.findLast((option) => /^-f(no-)?ipa-ra$/.test(option));
  if (wanted !== undefined) return wanted === '-fno-ipa-ra';
  return /^(-O[01g]?|)$/.test(options.findLast((option) => /^-O/.test(option)) ?? '');
}
