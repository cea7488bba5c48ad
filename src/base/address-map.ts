import { lowHalf } from './addr.js';

const slots = 1024;

/**
 * A map by address. A Map hashes a bigint at ten times a number's cost, and the same addresses come again and again: the last one
 * of each hash is found without.
 */
export class AddressMap<T> {
  readonly #all = new Map<bigint, T>();
  readonly #low = new Uint32Array(slots);
  readonly #keys: (bigint | undefined)[] = new Array(slots).fill(undefined);
  readonly #values: (T | undefined)[] = new Array(slots).fill(undefined);

  get(address: bigint): T | undefined {
    const low = lowHalf(address);
    const slot = slotOf(low);
    if (this.#low[slot] === low && this.#keys[slot] === address) return this.#values[slot];
    const value = this.#all.get(address);
    this.#keep(slot, low, address, value);
    return value;
  }

  set(address: bigint, value: T): void {
    this.#all.set(address, value);
    const low = lowHalf(address);
    this.#keep(slotOf(low), low, address, value);
  }

  delete(address: bigint): void {
    this.#all.delete(address);
    const low = lowHalf(address);
    this.#keep(slotOf(low), low, address, undefined);
  }

  clear(): void {
    this.#all.clear();
    this.#keys.fill(undefined);
    this.#values.fill(undefined);
  }

  get size(): number {
    return this.#all.size;
  }

  #keep(slot: number, low: number, address: bigint, value: T | undefined): void {
    this.#low[slot] = low;
    this.#keys[slot] = address;
    this.#values[slot] = value;
  }
}

function slotOf(low: number): number {
  return ((low >>> 1) ^ (low >>> 11) ^ (low >>> 21)) & (slots - 1);
}
