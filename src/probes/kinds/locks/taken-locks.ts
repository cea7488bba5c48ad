import { addTo } from '../../../base/made-once.js';
import type { KnownLock } from './lock-names.js';

/** A lock that was taken. */
interface Taken {
  lock: KnownLock;
  /** Its address and space, as one number. */
  readonly place: bigint;
  /** Which take of all was its last: memory of one that was freed is another's. */
  at: number;
}

/** log2 of the bytes of memory whose locks are looked through together. */
const partBits = 8n;
/** Bytes of a lock that is known by each part that it lies in; few are larger. */
const largest = 4096;

/** The locks that were taken, by their places and by what lies inside of them. A program may have 100,000. */
export class TakenLocks {
  readonly #all = new Map<bigint, Taken>();
  readonly #parts = new Map<bigint, Taken[]>();
  readonly #large: Taken[] = [];
  #takes = 0;

  take(place: bigint, lock: KnownLock): void {
    const known = this.#all.get(place);
    const taken = known ?? { lock, place, at: 0 };
    const before = known?.lock.size ?? 0;
    taken.lock = lock;
    taken.at = ++this.#takes;
    if (!known) this.#all.set(place, taken);
    if (lock.size > before) this.#spread(taken, before);
  }

  /** The one that begins at a place. */
  at(place: bigint): KnownLock | undefined {
    return this.#all.get(place)?.lock;
  }

  /** Of those that a place lies in, the one that was taken last. */
  around(place: bigint): KnownLock | undefined {
    const [near, far] = [newest(this.#parts.get(place >> partBits), place), newest(this.#large, place)];
    return (near && far ? (near.at > far.at ? near : far) : (near ?? far))?.lock;
  }

  /** `known`: its bytes that are known already. */
  #spread(taken: Taken, known: number): void {
    const { lock, place } = taken;
    if (lock.size > largest) {
      if (known <= largest) this.#large.push(taken);
      return;
    }
    const [first, last] = [place >> partBits, (place + BigInt(lock.size - 1)) >> partBits];
    const next = known === 0 ? first : ((place + BigInt(known - 1)) >> partBits) + 1n;
    for (let part = next; part <= last; part++) addTo(this.#parts, part, taken);
  }
}

function newest(among: readonly Taken[] = [], place: bigint): Taken | undefined {
  let found: Taken | undefined;
  for (const one of among) {
    const isAround = place >= one.place && place < one.place + BigInt(one.lock.size);
    if (isAround && !(found && found.at > one.at)) found = one;
  }
  return found;
}
