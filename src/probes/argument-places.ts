import type { Architecture, FloatPassing } from '../arch/index.js';
import { putLow } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { type Die, DW_AT, DW_TAG, locationAt } from '../dwarf/index.js';
import type { CodeAddress } from '../elf/index.js';
import type { Shape } from '../values/index.js';
import { type Described, pointerInFrame } from './described-places.js';
import { type HiddenRegisters, PassingRegisters, unavailable, type ValuePlace } from './passing-registers.js';
import { isFunction, isHomogeneous, isSurelyBlock, leavesOf, type Scalar, scalarsOf } from './scalar-layout.js';

export type { ValuePlace } from './passing-registers.js';

/** rustc's own calling convention, that of rustc versions that are not supported here, or the platform's. */
export type Convention = 'rust' | 'old-rust' | 'c';

/** How a function is called. */
export interface Calling {
  readonly arch: Architecture;
  readonly convention: Convention;
  /** Undefined if it is not known whether numbers have registers of their own. */
  readonly floats: FloatPassing | undefined;
}

/** The first version whose convention is the one described here. */
const knownRustc = 95;

/** Which of rustc's conventions a function was compiled to, by its unit's producer. */
export function rustConvention(die: Die): Convention {
  const [, minor] = /rustc version 1\.(\d+)/.exec(die.unit.root.string(DW_AT.producer) ?? '') ?? [];
  return minor !== undefined && Number(minor) >= knownRustc ? 'rust' : 'old-rust';
}

const WORD = 8;

/** Where the calling convention puts arguments of these types, and whether any of them is passed on the stack. */
interface Placed {
  readonly places: readonly ValuePlace[];
  /** Also true if that is not known. */
  readonly stack: boolean;
}

/**
 * The calling conventions: the platform's are given by {@link Architecture}, from RISC-V's and AMD64's psABI. For
 * rustc's own see rustc_ty_utils/src/abi.rs: Each scalar has a register, and a block of bytes above one word is passed
 * by address. Where `floats` is not known, nothing is known of arguments behind a number: it may take an integer
 * register. Not every compiler marks C++ classes that are passed by address: their place in the frame says.
 */
export function placeArguments(
  calling: Calling,
  types: readonly Shape[],
  hidden: HiddenRegisters,
  described: readonly Described[] = [],
): Placed {
  const { arch, floats } = calling;
  const numbers = floats && { ...floats, names: floats.arguments };
  const registers = new PassingRegisters(arch.arguments, numbers, hidden);
  const places = types.map((type, i): ValuePlace => {
    const { size } = type;
    const place = described[i];
    if (arch.alignsPairs && type.kind === 'integer' && size === 2 * WORD) registers.align();
    if (size === undefined || type.kind === 'opaque') return registers.loseAll();
    if (size === 0) return { kind: 'registers', parts: [] };
    if (calling.convention === 'c' && (isByReference(type) || (place?.kind === 'frame' && place.byAddress)))
      return registers.byAddress();
    return calling.convention === 'c'
      ? placeForC(calling, type, size, registers)
      : placeForRust(calling, type, size, registers);
  });
  return { places, stack: registers.stack };
}

function placeForRust({ floats }: Calling, type: Shape, size: number, registers: PassingRegisters): ValuePlace {
  // A function itself takes no register.
  if (isFunction(type)) return registers.lose(1);
  const scalars = scalarsOf(type);
  if (scalars?.some(({ float }) => float) && !floats) return registers.lose(wordsIn(size));
  if (scalars) return registers.scalars(scalars);
  if (type.kind === 'integer' || size <= WORD) return registers.scalars(integerWords(size));
  return size > 2 * WORD || isSurelyBlock(type) ? registers.byAddress() : registers.loseAll();
}

function placeForC({ arch, floats }: Calling, type: Shape, size: number, registers: PassingRegisters): ValuePlace {
  const { aggregates } = arch;
  const isScalar = scalarKinds.has(type.kind) || type.kind === 'float';
  // An array is a vector: C passes no other one.
  if ((aggregates === undefined && !isScalar) || type.kind === 'array') return registers.loseAll();
  const onStack = (scalars: readonly Scalar[]): ValuePlace =>
    aggregates?.takesAll ? registers.closed(scalars) : registers.onStack();
  if (size > mostInRegisters(floats) || (size > 2 * WORD && !holdsFloat(type)))
    return aggregates?.large === 'by-address' ? registers.byAddress() : registers.onStack();
  if (holdsFloat(type)) {
    const leaves = leavesOf(type);
    if (leaves === undefined) return registers.loseAll();
    if (floats === undefined) return registers.lose(wordsIn(size));
    if (size > 2 * WORD && !isHomogeneous(leaves)) return registers.byAddress();
    const scalars = floatScalars(floats, leaves, size);
    if (scalars === undefined) return registers.loseAll();
    if (registers.hasFor(scalars) || isScalar) return registers.scalars(scalars);
    if (floats.overflow === 'stack') return onStack(scalars);
  }
  const words = integerWords(size);
  const fits = registers.fits(words.length) || aggregates?.maySplit;
  return fits ? registers.scalars(words) : onStack(words);
}

/** Bytes of the largest value that may be in registers. */
function mostInRegisters(floats: FloatPassing | undefined): number {
  return (floats?.structs === 'homogeneous' ? 4 : 2) * WORD;
}

/** The registers that C's convention wants for a value with numbers; undefined if that is not known. */
function floatScalars(
  { structs, widest }: FloatPassing,
  leaves: readonly Scalar[],
  size: number,
): readonly Scalar[] | undefined {
  const isEach = (one: Scalar): boolean => one.size <= (one.float ? widest : WORD);
  if (structs === 'by-member') {
    const integers = leaves.filter(({ float }) => !float).length;
    if (leaves.length <= 2 && integers < 2 && leaves.every(isEach)) return leaves;
    return integerWords(size);
  }
  if (structs === 'homogeneous') {
    if (!isHomogeneous(leaves)) return integerWords(size);
    return leaves.every(isEach) ? leaves : undefined;
  }
  if (leaves.some(({ offset, size: bytes }) => offset % bytes !== 0)) return undefined;
  return bytesInWords(size).map((word) => {
    const inside = leaves.filter(({ offset }) => Math.floor(offset / WORD) === word.offset / WORD);
    return { ...word, float: inside.every(({ float }) => float) };
  });
}

/** Of what may be in registers: a word or two. */
function wordsIn(size: number): number {
  return bytesInWords(Math.min(size, 2 * WORD)).length;
}

/**
 * One for the address of a result in memory (`resultInMemory`, undefined: not known). Further ones for a closure's
 * captures or for a Future: no argument names these. Rust's closures take a pointer to what they capture, or that
 * itself (`FnOnce`). If several captures are said to be behind one pointer of the frame, it is one register. A single
 * one may be a slice, in two.
 */
export function hiddenRegisters(
  { resultAddress }: Pick<Architecture, 'resultAddress'>,
  name: string,
  children: readonly Die[],
  entry: CodeAddress,
  resultInMemory: boolean | undefined,
): HiddenRegisters {
  const isElsewhere = resultInMemory === false || resultAddress !== undefined;
  const address = isElsewhere ? 0 : 1;
  const result = { most: address, result: address, isKnown: isElsewhere || resultInMemory !== undefined } as const;
  // A Future's own is `Pin<&mut Self>`.
  if (/^\{(async|gen|coroutine)/.test(name)) return { ...result, most: result.most + 1 };
  if (!/^\{closure#/.test(name)) return result;
  const captures = children.filter((child) => child.tag === DW_TAG.variable);
  const [first, ...others] = captures.map((one) => pointerInFrame(locationAt(one, DW_AT.location, entry)));
  const isOne = first !== undefined && others.length > 0 && others.every((at) => at === first);
  return isOne ? { ...result, most: result.most + 1 } : { ...result, most: result.most + 2, isKnown: false };
}

/**
 * Whether the last argument's members are passed each by itself: `Fn::call` and its like take a tuple so (rustc's
 * `extern "rust-call"`). With one member that makes no difference.
 */
export function isUntupled(name: string, types: readonly Shape[]): boolean {
  const last = types.at(-1);
  return (
    types.length === 2 &&
    /^call(_mut|_once)?(<|$)/.test(name) &&
    last?.kind === 'struct' &&
    last.name.startsWith('(') &&
    last.fields.length > 1
  );
}

/**
 * Where a result of this type is when the function has returned. `inMemory`: the caller gave an address for it, in
 * the first register. rustc 1.95 and later return a block of bytes above one word through memory.
 */
export function placeResult(
  { arch, convention, floats }: Calling,
  type: Shape,
): { readonly place: ValuePlace; readonly inMemory: boolean | undefined } {
  const { size } = type;
  if (size === undefined) return { place: unavailable, inMemory: undefined };
  // A `long double`, complex numbers and vectors are in registers of their own.
  if (convention === 'c' && (type.kind === 'opaque' || type.kind === 'array'))
    return { place: unavailable, inMemory: size > 2 * WORD ? undefined : false };
  if (convention === 'c' && isByReference(type)) return { place: unavailable, inMemory: true };
  const numbersAlone = convention === 'c' && size <= mostInRegisters(floats) && holdsFloat(type) ? leavesOf(type) : [];
  if (size > 2 * WORD && !numbersAlone?.length)
    return { place: unavailable, inMemory: numbersAlone ? true : undefined };
  if (size > 2 * WORD && !isHomogeneous(numbersAlone ?? [])) return { place: unavailable, inMemory: true };
  const scalars = scalarsOf(type);
  const isBlock = convention !== 'c' && scalars === undefined && type.kind !== 'integer';
  if (isBlock && size > WORD) {
    const isSure = convention === 'rust' && isSurelyBlock(type);
    return { place: unavailable, inMemory: isSure ? true : undefined };
  }
  const returned = returnedScalars({ convention, floats }, type, size);
  if (returned === undefined) return { place: unavailable, inMemory: scalars ? false : undefined };
  const numbers = floats && { ...floats, names: floats.results };
  const registers = new PassingRegisters(arch.results, numbers, { most: 0, result: 0, isKnown: true });
  return { place: registers.scalars(returned), inMemory: false };
}

/** What a result is made of, each in a register of its own; undefined if that is not known. */
function returnedScalars(
  { convention, floats }: Pick<Calling, 'convention' | 'floats'>,
  type: Shape,
  size: number,
): readonly Scalar[] | undefined {
  if (convention !== 'c') {
    const scalars = scalarsOf(type) ?? integerWords(size);
    return floats || !scalars.some(({ float }) => float) ? scalars : undefined;
  }
  if (!holdsFloat(type)) return integerWords(size);
  const leaves = leavesOf(type);
  return floats && leaves && floatScalars(floats, leaves, size);
}

/** The bytes of a value, from little-endian parts; undefined if a register is not known. */
export function bytesIn(place: ValuePlace, size: number, registers: RegisterReader): Uint8Array | undefined {
  if (place.kind !== 'registers') return undefined;
  const bytes = new Uint8Array(size);
  for (const part of place.parts) {
    let rest = part.register === undefined ? part.constant : registers.register(part.register);
    if (rest === undefined) return undefined;
    if (part.register !== undefined && part.mask !== undefined) rest &= part.mask;
    const end = Math.min(part.offset + part.size, size);
    for (let at = part.offset; at < end; at += WORD, rest >>= 64n) putLow(rest, bytes, at, Math.min(WORD, end - at));
  }
  return bytes;
}

function bytesInWords(size: number): { offset: number; size: number }[] {
  return Array.from({ length: Math.ceil(size / WORD) }, (_, i) => ({
    offset: i * WORD,
    size: Math.min(WORD, size - i * WORD),
  }));
}

function integerWords(size: number): Scalar[] {
  return bytesInWords(size).map((word) => ({ ...word, float: false }));
}

/** A C++ class whose copies are made by its own code is passed by its address. */
function isByReference({ die }: Shape): boolean {
  return die?.number(DW_AT.calling_convention) === PASSED_BY_REFERENCE;
}

/** DW_CC_pass_by_reference. */
const PASSED_BY_REFERENCE = 4;

const scalarKinds: ReadonlySet<Shape['kind']> = new Set(['integer', 'bool', 'char', 'enumeration', 'pointer']);

function holdsFloat(type: Shape, depth = 0): boolean {
  if (depth > 16) return true;
  if (type.kind === 'float') return true;
  if (type.kind === 'array') return holdsFloat(type.element(), depth + 1);
  if (type.kind === 'struct' || type.kind === 'union') {
    return type.fields.some((field) => holdsFloat(field.type(), depth + 1));
  }
  return false;
}
