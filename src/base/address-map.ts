import { type Addr, lowHalf } from './addr.js';
import { firstWhere } from './search.js';

/** The key of an address in an address space: the address itself where there is one only. */
export function inSpace(address: Addr, space: Addr | undefined): bigint {
  return space === undefined ? address : (space << 64n) | address;
}

/**
 * A map by address. In a Map, a bigint costs ten times as much to hash as a number. The same addresses come again and
 * again, so the last one of each hash is kept separately.
 */
export class AddressMap<T> {
  readonly #all = new Map<bigint, T>();
  readonly #low: Uint32Array;
  readonly #keys: (bigint | undefined)[];
  readonly #values: (T | undefined)[];

  /** `slots`: the number of hashes, a power of two; about as many as addresses in use at one time. */
  constructor(slots = 1024) {
    this.#low = new Uint32Array(slots);
    this.#keys = new Array(slots).fill(undefined);
    this.#values = new Array(slots).fill(undefined);
  }

  get(address: bigint): T | undefined {
    const low = lowHalf(address);
    const slot = this.#slotOf(low);
    if (this.#isKept(slot, low, address)) return this.#values[slot];
    const value = this.#all.get(address);
    this.#keep(slot, low, address, value);
    return value;
  }

  set(address: bigint, value: T): void {
    const low = lowHalf(address);
    const slot = this.#slotOf(low);
    if (this.#isKept(slot, low, address) && this.#values[slot] === value) return;
    this.#all.set(address, value);
    this.#keep(slot, low, address, value);
  }

  delete(address: bigint): void {
    const low = lowHalf(address);
    const slot = this.#slotOf(low);
    // That it is not there is kept, too.
    if (this.#isKept(slot, low, address) && this.#values[slot] === undefined) return;
    this.#all.delete(address);
    this.#keep(slot, low, address, undefined);
  }

  clear(): void {
    this.#all.clear();
    this.#keys.fill(undefined);
    this.#values.fill(undefined);
  }

  values(): IterableIterator<T> {
    return this.#all.values();
  }

  get size(): number {
    return this.#all.size;
  }

  #isKept(slot: number, low: number, address: bigint): boolean {
    return this.#low[slot] === low && this.#keys[slot] === address;
  }

  #keep(slot: number, low: number, address: bigint, value: T | undefined): void {
    this.#low[slot] = low;
    this.#keys[slot] = address;
    this.#values[slot] = value;
  }

  #slotOf(low: number): number {
    return ((low >>> 1) ^ (low >>> 11) ^ (low >>> 21)) & (this.#low.length - 1);
  }
}

/** Bytes of memory. */
export interface Bytes {
  readonly address: Addr;
  readonly length: number;
}

/** Whether an address is in one of many pieces that do not overlap: there may be tens of thousands. */
export function placesIn(pieces: readonly Bytes[]): (at: bigint) => boolean {
  const sorted = [...pieces].sort((a, b) => (a.address < b.address ? -1 : 1));
  return (at) => {
    const from = firstWhere(sorted.length, (index) => (sorted[index] as Bytes).address > at);
    const last = sorted[from - 1];
    return last !== undefined && at < last.address + BigInt(last.length);
  };
}
