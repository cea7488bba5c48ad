import { type Addr, addr } from '../../base/addr.js';
import { littleEndian } from '../../dwarf/index.js';
import { stateOf } from './await-chain.js';
import type { FutureType, Guard, HeldFuture, HopTarget, Place } from './types.js';

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
