import { type Addr, addr } from '../../base/addr.js';
import { littleEndian } from '../../base/little-endian.js';
import type { FutureState, FutureType, Guard, HeldFuture, HopTarget, Place } from './types.js';

/** One Future below the outermost. */
export interface ChainLink {
  readonly future: FutureType | undefined;
  /** The name of the awaited type; for a `dyn Future` that no vtable resolved, the trait object's. */
  readonly typeName: string;
  /** Bytes from the outermost Future's start; undefined if it lies elsewhere. */
  readonly offset: number | undefined;
  /** The place if it lies elsewhere: read on from there with `future`. Only the last link of a chain has it. */
  readonly pointer: Addr | undefined;
  readonly vtable: Addr | undefined;
  /** Undefined if it is not compiler-made, or if its bytes were not among those read. */
  readonly state: FutureState | undefined;
}

/**
 * The state of a compiler-made Future at `offset` of the bytes. Undefined if the discriminant belongs to none of its
 * states (memory that is no such Future), or if the bytes end before it. Also undefined for a Future that is written
 * by hand.
 */
export function stateOf(future: FutureType, bytes: Uint8Array, offset = 0): FutureState | undefined {
  const { discriminant, states } = future;
  if (discriminant === undefined) return undefined;
  const value = numberIn(bytes, offset + discriminant.offset, discriminant.size);
  return value === undefined ? undefined : states.find((s) => s.value === value);
}

/**
 * The Futures that a Future awaits, outermost first, read from its own bytes: `__awaitee` lies in place. Bounded by
 * the type's nesting.
 */
export function awaitChain(
  future: FutureType,
  bytes: Uint8Array,
  resolve: (vtable: Addr) => FutureType | undefined = () => undefined,
): ChainLink[] {
  const chain: ChainLink[] = [];
  let at: FutureType | undefined = future;
  let offset = 0;
  // A type contains what it awaits, so sizes strictly decrease; in a damaged file they might not.
  while (at !== undefined && chain.length < MAX_LINKS) {
    const awaitee: FutureState['awaitee'] = stateOf(at, bytes, offset)?.awaitee;
    if (awaitee === undefined) break;
    offset += awaitee.offset;
    if (awaitee.box !== undefined) {
      const { box } = awaitee;
      const pointer = addressAt(bytes, offset + box.pointer);
      const vtable = box.vtable === undefined ? undefined : addressAt(bytes, offset + box.vtable);
      const target: FutureType | undefined = box.future ?? (vtable === undefined ? undefined : resolve(vtable));
      chain.push({
        future: target,
        typeName: target?.instance ?? box.typeName,
        offset: undefined,
        pointer,
        vtable,
        state: undefined,
      });
      break;
    }
    at = awaitee.future;
    chain.push({
      future: at,
      typeName: awaitee.typeName,
      offset,
      pointer: undefined,
      vtable: undefined,
      state: at && stateOf(at, bytes, offset),
    });
  }
  return chain;
}

const MAX_LINKS = 256;

function numberIn(bytes: Uint8Array, offset: number, size: number): number | undefined {
  if (offset + size > bytes.length) return undefined;
  let value = 0;
  for (let i = size - 1; i >= 0; i--) value = value * 256 + (bytes[offset + i] as number);
  return value;
}

function addressAt(bytes: Uint8Array, offset: number): Addr | undefined {
  const word = unsignedAt(bytes, offset);
  return word === undefined ? undefined : addr(word);
}

/** A held Future that exists by the bytes of its holder. If it lies elsewhere, the pointer to follow. */
export interface LiveFuture {
  readonly held: HeldFuture;
  /** From the start of the bytes; undefined if a pointer leads to it. */
  readonly offset: number | undefined;
  readonly next: NextBlock | undefined;
}

/** Memory to read next: {@link liveAt} with `hop` finds the same held Future in it. */
export interface NextBlock {
  readonly pointer: Addr;
  /** For a `dyn Future`: the address of its vtable, which gives the type. */
  readonly vtable: Addr | undefined;
  readonly to: HopTarget;
  /** Elements of a slice; 1 otherwise. Read from memory, so it must be compared with a limit first. */
  readonly count: bigint;
  readonly hop: number;
}

/** The most elements of arrays that are searched in one block; no program has more in one Future. */
const MAX_PLACES = 4096;

/** The Futures that a Future at `base` of the bytes holds now: those of its present state, or of its fields. */
export function liveFutures(future: FutureType, bytes: Uint8Array, base = 0): LiveFuture[] {
  const holds = future.kind === 'impl' ? future.holds : (stateOf(future, bytes, base)?.holds ?? []);
  return holds.flatMap((held) => liveAt(held, bytes, base));
}

/**
 * Where a held Future is in a block of memory, `hop` pointers away from its holder (0: the holder's own bytes).
 * Elements of arrays are separate results. Left out are elements that discriminants exclude, null pointers, and
 * places past the end of the bytes.
 */
export function liveAt(held: HeldFuture, bytes: Uint8Array, base = 0, hop = 0): LiveFuture[] {
  const pointer = held.hops[hop];
  const live: LiveFuture[] = [];
  for (const offset of placesOf(pointer ?? held, bytes, base)) {
    if (pointer === undefined) {
      if (offset + held.size <= bytes.length) live.push({ held, offset, next: undefined });
      continue;
    }
    const address = unsignedAt(bytes, offset);
    if (address === undefined || address === 0n) continue;
    const last = hop === held.hops.length - 1;
    const vtable = last && held.vtable !== undefined ? unsignedAt(bytes, offset + held.vtable) : undefined;
    const count = pointer.to.kind === 'slice' ? (unsignedAt(bytes, offset + pointer.to.length) ?? 0n) : 1n;
    const next: NextBlock = {
      pointer: addr(address),
      vtable: vtable === undefined ? undefined : addr(vtable),
      to: pointer.to,
      count,
      hop: hop + 1,
    };
    live.push({ held, offset: undefined, next });
  }
  return live;
}

/** How many bytes of a block {@link liveAt} reads: an array's elements and discriminants may lie behind the first. */
export function extentOf(held: HeldFuture, hop: number): number {
  const pointer = held.hops[hop];
  const { offset, repeats, guards } = pointer ?? held;
  const reach = (inner = repeats.length): number =>
    repeats.slice(0, inner).reduce((sum, { count, stride }) => sum + (count - 1) * stride, 0);
  const length = pointer?.to.kind === 'slice' ? pointer.to.length : 0;
  const vtable = hop === held.hops.length - 1 ? (held.vtable ?? 0) : 0;
  const own = pointer ? Math.max(0, length, vtable) + 8 : held.size;
  const ends = guards.map((guard) => guard.offset + guard.size + reach(guard.repeats));
  return Math.max(offset + own + reach(), ...ends);
}

/** The offset of each of a place's repeats whose guards hold. */
function* placesOf(place: Place, bytes: Uint8Array, base: number): Generator<number> {
  const { repeats } = place;
  const index = repeats.map(() => 0);
  for (let n = 0; n < MAX_PLACES; n++) {
    // Offsets from the first k repeats, because a guard takes part in some repeats only.
    const shifts = [base];
    for (const [i, { stride }] of repeats.entries()) {
      shifts.push((shifts[i] as number) + (index[i] as number) * stride);
    }
    if (place.guards.every((guard) => holds(guard, bytes, shifts[guard.repeats] as number))) {
      yield (shifts[repeats.length] as number) + place.offset;
    }
    let digit = repeats.length - 1;
    while (digit >= 0 && ++(index[digit] as number) >= (repeats[digit]?.count ?? 0)) index[digit--] = 0;
    if (digit < 0) return;
  }
}

function holds(guard: Guard, bytes: Uint8Array, shift: number): boolean {
  const value = unsignedAt(bytes, shift + guard.offset, guard.size);
  if (value === undefined) return false;
  return guard.values.some(({ low, high }) => value >= low && value <= high) === guard.within;
}

function unsignedAt(bytes: Uint8Array, offset: number, size = 8): bigint | undefined {
  return offset < 0 || offset + size > bytes.length ? undefined : littleEndian(bytes, offset, size);
}
