// An expression is planned by evaluating it once, before there is a target. Each argument, and whatever a reference
// leads to, is a region of made-up addresses. So the reads that the evaluation asks for say which references it
// follows, and its result says in which of the regions the value lies. What the program's types do not promise to be
// there (a raw pointer, an element, a variant), only a stop can read.
import { type Addr, addr } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import { nearestWords } from '../../base/search.js';
import type { HitMemory, MemoryRequest } from '../../calls/index.js';
import type { Die } from '../../dwarf/index.js';
import {
  evaluate,
  type MemberExpr,
  type Need,
  ObjectPlace,
  type Operand,
  type Shape,
  staticPlace,
  Unread,
  wordBytes,
} from '../../values/index.js';
import { bytesIn, type ValuePlace } from '../argument-places.js';
import { loadsOf, type PlannedLoad, type PlannedReads } from '../read-plan.js';
import { type ProgramExpressions, rootOf } from './program.js';

/** What an expression's names stand for at an entry: a parameter, a register. */
export interface NamedPlace {
  readonly name: string;
  /** Undefined without debug info: a word. */
  readonly shape: Shape | undefined;
  readonly where: ValuePlace;
}

/** A pointer that leads to an object: an argument, or a reference in what it points to, and so on. */
export interface PlannedPointer {
  /** The register that holds the first pointer at the probe's entry. */
  readonly register: string;
  /** Where the next pointer lies in what each one points to. */
  readonly through: readonly number[];
}

/** A number behind a pointer for which an expression is planned: the state of a Future. */
export interface AssumedNumber {
  readonly pointer: PlannedPointer;
  readonly offset: number;
  readonly size: number;
  readonly value: bigint;
}

type Registers = ValuePlace & { readonly kind: 'registers' };

/** Where a value lies that a record can hold. */
export type Spot = {
  readonly offset: number;
  readonly shape: Shape;
} & (
  | { readonly kind: 'registers'; readonly where: Registers; readonly size: number }
  | {
      readonly kind: 'memory';
      readonly pointer: PlannedPointer;
      readonly loads: readonly PlannedLoad[];
      /** What a pointer to such an object is a multiple of, at least. */
      readonly align: number;
    }
);

/** How an expression's value is come by at an entry. */
interface ExpressionPlan {
  /** Undefined if only a stop can show it. */
  readonly spot: Spot | undefined;
  /** Why so. */
  readonly why: string | undefined;
  /** Its type, where that is known beforehand. */
  readonly shape: Shape | undefined;
}

/** A function without debug info has words. */
export const machineWord: Shape = {
  ...{ kind: 'integer', signed: false, character: false },
  ...{ name: 'u64', size: 8, die: undefined },
};

/** References that a trampoline follows, one behind the other. */
const mostHops = 4;
const WORD = 8;
/** Bytes from a pointer within which a value is read. */
const farthest = 4096;

/**
 * Plans an expression over a function's arguments and the program's statics. `assumed`: a discriminant on the way,
 * whose value is compared when the plan is used.
 * @throws RsptraceError `EXPRESSION_*` for an expression that makes no sense there
 */
export function planExpression(
  expression: MemberExpr,
  places: readonly NamedPlace[],
  program: ProgramExpressions | undefined,
  assumed?: AssumedNumber,
): ExpressionPlan {
  verifyRoot(expression, places, program);
  const plan = new Planning(places, assumed);
  if (!program) {
    if (expression.kind !== 'path') throw new RsptraceError('EXPRESSION_TYPE', 'without debug info it has no members');
    return plan.result(plan.own(expression.path));
  }
  const { shapes, names } = program;
  const locate = (variable: { readonly die: Die }): ObjectPlace =>
    staticPlace(variable) ?? ObjectPlace.memory(addr(0n));
  try {
    const read = (need: Need): Uint8Array => plan.read(need);
    return plan.result(evaluate(expression, { shapes, names, own: (name) => plan.own(name), locate, read }));
  } catch (error) {
    // It depends on what is known at a hit alone.
    if (error instanceof Unread) return plan.result(undefined);
    throw program.withNearest(error, expression);
  }
}

function verifyRoot(e: MemberExpr, places: readonly NamedPlace[], program: ProgramExpressions | undefined): void {
  const root = rootOf(e);
  if (root === undefined || places.some(({ name }) => name === root)) return;
  if (root.includes('::') || program?.hasStatic(root)) return;
  const names = places.map(({ name }) => name);
  const [near] = nearestWords(root, names);
  const meant = near === undefined ? '' : `did you mean ${near}? `;
  throw new RsptraceError('EXPRESSION_NAME', `it has no argument ${root}`, {
    hint: names.length > 0 ? `${meant}arguments: ${names.slice(0, 12).join(', ')}` : 'it has no arguments',
  });
}

type Region = Registers | ({ readonly kind: 'object' } & PlannedPointer);

/** Regions begin where no architecture has memory: in the hole between the two halves of an address space. */
const firstRegion = 1n << 63n;
const regionBits = 44n;

const nowhere: Registers = { kind: 'registers', parts: [] };

const whys = {
  pointer: 'it goes through a pointer that may lead anywhere',
  static: 'it is reached from a static',
  many: `it lies behind more than ${mostHops} references`,
  part: 'a reference on the way is in no register of its own',
  vtable: 'only the target knows which type a dyn is',
  discriminant: 'only the target knows which variant is there',
  length: 'only the target knows how long a collection is',
  value: 'it is computed',
} as const;

class Planning {
  readonly #places: readonly NamedPlace[];
  readonly #assumed: AssumedNumber | undefined;
  readonly #regions: Region[] = [];
  #why: string | undefined;

  constructor(places: readonly NamedPlace[], assumed: AssumedNumber | undefined) {
    this.#places = places;
    this.#assumed = assumed;
  }

  own(name: string): Operand | undefined {
    const found = this.#places.find((each) => each.name === name);
    if (found === undefined) return undefined;
    const { where, shape = machineWord } = found;
    if (where.kind === 'unavailable') {
      throw new RsptraceError('EXPRESSION_OPTIMIZED_OUT', `its argument ${name} is in no register at the entry`, {
        hint: where.why ?? 'it is passed in memory, or in registers of another kind',
      });
    }
    const region: Region = where.kind === 'pointer' ? { kind: 'object', register: where.register, through: [] } : where;
    return { shape, place: ObjectPlace.memory(this.#begin(region)) };
  }

  result(found: Operand | undefined): ExpressionPlan {
    if (found === undefined) return { spot: undefined, why: this.#why, shape: undefined };
    const { shape, place } = throughWrappers(found);
    if (this.#why !== undefined) return { spot: undefined, why: this.#why, shape };
    const at = place.address === undefined ? undefined : this.#regionAt(place.address);
    const known = shape.size ? place.atHand(shape.size) : undefined;
    if (known && 'missing' in known)
      throw new RsptraceError('EXPRESSION_OPTIMIZED_OUT', 'the compiler has left out what nothing reads of its static');
    if (at === undefined) return { spot: undefined, why: 'it is a static, or computed', shape };
    const { region, offset } = at;
    if (region.kind === 'registers') {
      const { parts } = region;
      const size = Math.max(0, ...parts.map((part) => part.offset + part.size));
      return { spot: { kind: 'registers', where: region, size, offset, shape }, why: undefined, shape };
    }
    const { register, through } = region;
    if (offset + (shape.size ?? 0) > farthest) return { spot: undefined, why: 'it lies too far into an object', shape };
    const pointer = { register, through };
    return { spot: behind(pointer, offset, shape), why: undefined, shape };
  }

  #begin(region: Region): Addr {
    this.#regions.push(region);
    return addr(firstRegion + (BigInt(this.#regions.length) << regionBits));
  }

  #regionAt(address: Addr): { readonly region: Region; readonly offset: number } | undefined {
    const from = address - firstRegion;
    const region = from < 0n ? undefined : this.#regions[Number(from >> regionBits) - 1];
    return region && { region, offset: Number(from & ((1n << regionBits) - 1n)) };
  }

  read({ place, size, use, plausible }: Need): Uint8Array {
    if (use === 'reference' || use === 'pointer') {
      const next = place.address === undefined ? undefined : this.#regionAt(place.address);
      const pointer = next && use === 'reference' ? pointerAt(next.region, next.offset) : whys.pointer;
      if (typeof pointer === 'object') return wordBytes(this.#begin({ kind: 'object', ...pointer }), WORD);
      this.#why ??= pointer ?? whys.static;
      return wordBytes(this.#begin(nowhere), WORD);
    }
    if (use === 'discriminant' && this.#assumed && this.#isAssumed(this.#assumed, place, size))
      return wordBytes(this.#assumed.value, size);
    this.#why ??= whys[use];
    if (plausible === undefined) throw new Unread({ address: place.address ?? addr(0n), length: size });
    return wordBytes(plausible, size);
  }

  #isAssumed({ pointer, offset, size }: AssumedNumber, { address }: ObjectPlace, wanted: number): boolean {
    const at = address === undefined ? undefined : this.#regionAt(address);
    if (at?.region.kind !== 'object' || at.offset !== offset || size !== wanted) return false;
    const { register, through } = at.region;
    return register === pointer.register && through.join() === pointer.through.join();
  }
}

/** The pointer that lies at an offset, or why no trampoline follows it. */
export function pointerAt(region: Region, offset: number): PlannedPointer | string {
  if (region.kind === 'registers') {
    const part = region.parts.find((each) => each.offset === offset && each.size === WORD);
    return part?.register === undefined || part.mask !== undefined
      ? whys.part
      : { register: part.register, through: [] };
  }
  const { register, through } = region;
  // A reference that is not aligned lies in a packed struct.
  if (through.length >= mostHops || offset % WORD !== 0 || offset > farthest) return whys.many;
  return { register, through: [...through, offset] };
}

function behind(pointer: PlannedPointer, offset: number, shape: Shape): Spot {
  const loads = loadsOf(offset, shape.size ?? 0);
  const align = Math.max(1, ...loads.map((load) => load.size));
  return { kind: 'memory', pointer, offset, shape, loads, align };
}

/** A number behind a pointer. */
export function numberIn({ pointer, offset, size }: Omit<AssumedNumber, 'value'>): Spot {
  return behind(pointer, offset, { ...machineWord, size });
}

/** A part of a value. */
export function partOf(whole: Spot, from: number, shape: Shape): Spot {
  const offset = whole.offset + from;
  return whole.kind === 'memory' ? behind(whole.pointer, offset, shape) : { ...whole, offset, shape };
}

/** What wrappers around it hold: `NonZero`, an atomic, a cell. */
export function throughWrappers({ shape, place }: Operand): Operand {
  const view = shape.kind === 'struct' ? shape.view() : undefined;
  return view?.kind === 'through'
    ? throughWrappers({ shape: view.type(), place: place.inside(view.offset) })
    : { shape, place };
}

/** What a record must hold of memory, so that these values can be read from it. */
export function readsOf(spots: readonly Spot[]): PlannedReads[] {
  return spots.flatMap((spot): PlannedReads[] => {
    if (spot.kind !== 'memory' || spot.loads.length === 0) return [];
    const { pointer, loads, align, offset, shape } = spot;
    const { register, through } = pointer;
    const hops = through.map((hop, index): PlannedReads => {
      const load = { offset: hop, size: WORD } as const;
      const before = through.slice(0, index);
      return { pointer: register, through: before, align: WORD, size: hop + WORD, loads: [load] };
    });
    return [...hops, { pointer: register, through, align, size: offset + (shape.size ?? 0), loads }];
  });
}

/** The registers from which these values are read. */
export function registersOf(spots: readonly Spot[]): string[] {
  const names = spots.flatMap((spot) =>
    spot.kind === 'memory' ? [spot.pointer.register] : spot.where.parts.flatMap(({ register }) => register ?? []),
  );
  return [...new Set(names)];
}

/**
 * The bytes of a value; or the memory that must be read first; or undefined where a pointer on the way is none.
 */
export function bytesAt(
  spot: Spot,
  registers: RegisterReader,
  memory: HitMemory,
): Uint8Array | MemoryRequest | undefined {
  const { offset, shape } = spot;
  const end = offset + (shape.size ?? 0);
  if (spot.kind === 'registers') return bytesIn(spot.where, spot.size, registers)?.subarray(offset, end);
  const { register, through } = spot.pointer;
  let at = registers.register(register);
  for (const hop of [...through, undefined]) {
    const align = BigInt(hop === undefined ? spot.align : WORD);
    // A trampoline makes the same check.
    if (at === undefined || at === 0n || at % align !== 0n) return undefined;
    const length = hop === undefined ? end : hop + WORD;
    const request: MemoryRequest = { address: at as Addr, length };
    const bytes = memory.at(request.address, length)?.bytes;
    if (bytes === undefined) return request;
    if (hop === undefined) return bytes.subarray(offset, end);
    at = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(hop, true);
  }
  return undefined;
}
