import type { Addr } from '../base/addr.js';
import type { Reading } from '../calls/index.js';
import type { PlacedLoad } from './record-readings.js';

/** What was read of a record: equal bytes there mean the same. */
export class ReadLog {
  isOn = false;
  /** Something was read that is not kept here. */
  isOdd = false;
  /** Sizes by offset from the record's begin. */
  readonly #places = new Map<number, number>();
  /** Objects that lie in the record. */
  readonly #readings: {
    readonly loads: readonly PlacedLoad[];
    readonly from: number;
    readonly reading: Reading | undefined;
  }[] = [];
  /** The largest alignment that a pointer was checked for. */
  align = 1;
  /** Futures whose polls have begun since the log is on: what they are copied as is certain. */
  readonly #begun = new Set<Addr>();

  start(): void {
    this.isOn = true;
    this.isOdd = false;
    this.align = 1;
    this.#begun.clear();
    this.#readings.length = 0;
    this.#places.clear();
  }

  read(at: number, size: number): void {
    this.#places.set(at, Math.max(size, this.#places.get(at) ?? 0));
  }

  /** An object, of which it will be known later what was used. `from`: added to the places of the loads. */
  reading(loads: readonly PlacedLoad[], from: number, reading: Reading | undefined): void {
    this.#readings.push({ loads, from, reading });
  }

  aligned(align: number): void {
    this.align = Math.max(this.align, align);
  }

  /** What was read of the record until now. The next one begins. */
  take(): ReadonlyMap<number, number> {
    for (const { loads, from, reading } of this.#readings) {
      const used = reading?.used;
      for (const { offset, size, at } of loads) {
        const isUsed = used?.some((each) => each.offset < offset + size && offset < each.offset + each.size) ?? true;
        if (isUsed) this.read(from + at, size);
      }
    }
    this.#readings.length = 0;
    const places = new Map(this.#places);
    this.#places.clear();
    return places;
  }

  begun(outer: Addr): void {
    this.#begun.add(outer);
  }

  /** What lies at an address is read as it was copied. */
  outer(address: Addr): void {
    if (!this.#begun.has(address)) this.isOdd = true;
  }
}
