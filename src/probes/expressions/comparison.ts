import type { Condition, IntegerIn } from '../../arch/index.js';
import { addr } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import { littleEndian } from '../../base/little-endian.js';
import type { MemoryReader, RegisterReader } from '../../base/memory-reader.js';
import { Answers, type HitMemory, type MemoryRequest, newRequests } from '../../calls/index.js';
import {
  type EvaluationScope,
  evaluate,
  type Missing,
  ObjectPlace,
  type Operand,
  staticPlace,
  Unread,
} from '../../values/index.js';
import { bytesIn } from '../argument-places.js';
import { loadSize, type PlannedReads } from '../read-plan.js';
import type { Comparison } from './condition.js';
import { type Meaning, meaningOf, scalarOf } from './literal.js';
import {
  type AssumedNumber,
  bytesAt,
  machineWord,
  type NamedPlace,
  partOf,
  planExpression,
  readsOf,
  registersOf,
  type Spot,
  throughWrappers,
} from './plan.js';
import type { ProgramExpressions } from './program.js';

/** A number at a function's entry. */
export interface PlannedNumber {
  readonly spot: Spot;
  readonly signed: boolean;
  /** Where a trampoline finds it; undefined if it is in no register of its own, or too wide. */
  readonly target: IntegerIn | undefined;
}

/** A comparison that was worked out for one function. */
export interface FunctionComparison extends Comparison {
  readonly places: readonly NamedPlace[];
  readonly program: ProgramExpressions | undefined;
  /** Undefined if only a stop can read it. */
  readonly number: PlannedNumber | undefined;
  /** Why so. */
  readonly why: string | undefined;
  /** Undefined if only a stop says its type. */
  readonly meaning: Meaning | undefined;
  /** The same for a trampoline, which then decides. */
  readonly target: Condition | undefined;
}

/** All of one list hold, in at least one of the lists. */
export type Conditions = readonly (readonly FunctionComparison[])[];

/**
 * Works a comparison out for one function, or for a Future in one state (`assumed`).
 *
 * @throws RsptraceError `EXPRESSION_*` for a function that has no such thing
 */
export function compareFor(
  comparison: Comparison,
  places: readonly NamedPlace[],
  program: ProgramExpressions | undefined,
  assumed?: AssumedNumber,
): FunctionComparison {
  const { expression, text, literal, op } = comparison;
  const plan = planExpression(expression, places, program, assumed);
  const meaning = plan.shape && meaningOf(literal, op, plan.shape, text);
  const number = plan.spot && numberAt(plan.spot);
  const target = number?.target && meaning?.target && { ...number.target, ...meaning.target };
  const why = plan.why === undefined ? undefined : `'${text}' is compared at a stop: ${plan.why}`;
  return { ...comparison, places, program, number, why, meaning, target };
}

/**
 * A number that distinguishes calls.
 * @throws RsptraceError `EXPRESSION_*`
 */
export function numberFor(
  { expression, text }: Pick<Comparison, 'expression' | 'text'>,
  places: readonly NamedPlace[],
  program: ProgramExpressions | undefined,
): PlannedNumber {
  const { spot, why, shape } = planExpression(expression, places, program);
  const number = spot && numberAt(spot);
  if (number && (number.spot.shape.size ?? 0) <= 8) return number;
  throw new RsptraceError('EXPRESSION_TYPE', `its ${text} is ${why ?? `no integer, but a ${shape?.name}`}`);
}

function numberAt(whole: Spot): PlannedNumber | undefined {
  const scalar = scalarOf(whole.shape);
  if (scalar === undefined) return undefined;
  const { offset, size, signed } = scalar;
  const spot = partOf(whole, offset, { ...machineWord, size });
  return { spot, signed, target: targetOf(spot, size, signed, whole.shape.kind === 'bool') };
}

function targetOf(spot: Spot, size: number, signed: boolean, isBool: boolean): IntegerIn | undefined {
  const width = loadSize(size);
  if (width === undefined) return undefined;
  if (spot.kind === 'memory') {
    const { pointer, offset, loads } = spot;
    const { register, through } = pointer;
    return loads.length === 1 ? { register, size: width, signed, behind: { through, offset } } : undefined;
  }
  const part = spot.where.parts.find((each) => each.offset === spot.offset && each.size >= size);
  if (part?.register === undefined) return undefined;
  const bits = (1n << BigInt(8 * size)) - 1n;
  // A bool is one bit of a byte; the conventions keep the other bits zero.
  const isWhole = part.mask === undefined || isBool || (part.mask & bits) === bits;
  return isWhole ? { register: part.register, size: width, signed } : undefined;
}

/** The number, or the memory that must be read first; undefined if it cannot be known. */
export function numberIn(
  { spot, signed, target }: PlannedNumber,
  registers: RegisterReader,
  memory: HitMemory,
): bigint | MemoryRequest | undefined {
  if (target && !target.behind) {
    const word = registers.register(target.register);
    if (word === undefined) return undefined;
    return signed ? BigInt.asIntN(8 * target.size, word) : BigInt.asUintN(8 * target.size, word);
  }
  const bytes = bytesAt(spot, registers, memory);
  return bytes instanceof Uint8Array ? integerOf(bytes, signed) : bytes;
}

function integerOf(bytes: Uint8Array, signed: boolean): bigint {
  const value = littleEndian(bytes);
  return signed ? BigInt.asIntN(8 * bytes.length, value) : value;
}

/**
 * Decides here what trampolines decide in the target, from what was read at a hit. A comparison does not hold if it
 * cannot be worked out. Examples: another variant's members, indexes beyond the length, unmapped memory.
 * @returns memory that must be read before it can be decided
 */
export function decide(
  conditions: Conditions,
  registers: RegisterReader,
  memory: HitMemory,
): boolean | readonly MemoryRequest[] {
  const missing: MemoryRequest[] = [];
  for (const all of conditions) {
    const decided = all.map((each) => compare(each, registers, memory));
    if (decided.every((each) => each === true)) return true;
    if (decided.some((each) => each === false)) continue;
    for (const each of decided) if (typeof each === 'object') missing.push(each);
  }
  return missing.length > 0 && missing;
}

/** The same where nothing more can be read. */
export function holds(conditions: Conditions, registers: RegisterReader, memory: HitMemory): boolean {
  return decide(conditions, registers, memory) === true;
}

/** The same, with memory that can be read. */
export async function holdsAtStop(
  conditions: Conditions,
  registers: RegisterReader,
  memory: MemoryReader,
): Promise<boolean> {
  const requests: MemoryRequest[] = [];
  const answers: (Uint8Array | undefined)[] = [];
  for (;;) {
    const decided = decide(conditions, registers, new Answers(requests, answers));
    if (typeof decided === 'boolean') return decided;
    const fresh = newRequests(decided, requests);
    if (fresh.length === 0) return false;
    for (const request of fresh) {
      requests.push(request);
      answers.push(await memory.read(request.address, request.length));
    }
  }
}

function compare(
  comparison: FunctionComparison,
  registers: RegisterReader,
  memory: HitMemory,
): boolean | MemoryRequest {
  const { number, meaning } = comparison;
  if (!number || !meaning) return compareAtStop(comparison, registers, memory);
  const value = numberIn(number, registers, memory);
  if (typeof value === 'bigint') return meaning.accepts(value);
  return value ?? false;
}

/** Evaluates the expression anew, with what was read so far. */
function compareAtStop(
  { expression, literal, op, text, places, program }: FunctionComparison,
  registers: RegisterReader,
  memory: HitMemory,
): boolean | MemoryRequest {
  if (!program) return false;
  const { shapes, names } = program;
  const own = (name: string): Operand | undefined => operandAt(name, places, registers);
  const known = (place: ObjectPlace, size: number): Uint8Array | Missing =>
    place.bytesBy(size, (address, length) => {
      const { bytes } = memory.at(address, length) ?? {};
      if (bytes === undefined) throw new Unread({ address, length });
      return bytes;
    });
  try {
    const read: EvaluationScope['read'] = ({ place, size }) => known(place, size);
    const { shape, place } = throughWrappers(evaluate(expression, { shapes, names, own, locate: staticPlace, read }));
    const { accepts } = meaningOf(literal, op, shape, text);
    const { offset, size, signed } = scalarOf(shape) ?? { offset: 0, size: 0, signed: false };
    const bytes = known(place.inside(offset), size);
    return bytes instanceof Uint8Array && accepts(integerOf(bytes, signed));
  } catch (error) {
    if (error instanceof Unread) return error.need;
    if (error instanceof RsptraceError && error.code.startsWith('EXPRESSION_')) return false;
    throw error;
  }
}

/** An argument at a hit, by its name. What is not known of it lies nowhere. */
export function operandAt(name: string, places: readonly NamedPlace[], registers: RegisterReader): Operand | undefined {
  const found = places.find((each) => each.name === name);
  if (found === undefined) return undefined;
  const { where, shape = machineWord } = found;
  return { shape, place: placeIn(where, shape.size ?? 0, registers) };
}

/** Where a value lies that is in registers, or behind one. */
export function placeIn(where: NamedPlace['where'], size: number, registers: RegisterReader): ObjectPlace {
  if (where.kind === 'pointer') {
    const address = registers.register(where.register);
    if (address !== undefined) return ObjectPlace.memory(addr(address));
  }
  return ObjectPlace.bytes(bytesIn(where, size, registers) ?? new Uint8Array(0));
}

/** What a trampoline needs for a function's conditions. */
interface PlannedConditions {
  readonly registers: readonly string[];
  readonly reads: readonly PlannedReads[];
  /** Why only a stop can decide. */
  readonly why: string | undefined;
  /** What the trampoline itself decides. */
  readonly when: readonly Condition[];
  /** That is all of it: otherwise the rest is decided when the record is read. */
  readonly isDecided: boolean;
}

/** More loads than this take a trampoline too long. */
const mostLoads = 16;

/** Plans a function's conditions. `others`: what else its record must have. */
export function planConditions(conditions: Conditions = [], others: readonly Spot[] = []): PlannedConditions {
  const all = conditions.flat();
  const spots = [...all.flatMap(({ number }) => number?.spot ?? []), ...others];
  const reads = readsOf(spots);
  const many = countLoads(reads) > mostLoads ? `its condition takes more than ${mostLoads} loads` : undefined;
  // One of several lists must hold: that is decided when the record is read.
  const [only = []] = conditions.length === 1 ? conditions : [];
  return {
    registers: registersOf(spots),
    reads,
    why: all.find(({ why }) => why !== undefined)?.why ?? many,
    when: only.flatMap(({ target }) => target ?? []),
    isDecided: conditions.length === 0 || (conditions.length === 1 && only.every(({ target }) => target !== undefined)),
  };
}

/** Each place counts once, however many comparisons read it. */
function countLoads(reads: readonly PlannedReads[]): number {
  const places = reads.flatMap(({ pointer, through = [], from = 0, loads }) =>
    loads.map(({ offset, size }) => `${pointer} ${through.join()} ${from + offset} ${size}`),
  );
  return new Set(places).size;
}
