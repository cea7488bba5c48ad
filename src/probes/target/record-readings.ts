import type { PlannedLoad } from '../read-plan.js';
import { Reading } from '../reading.js';

/** A load, and where it lies in what is kept of it. */
export interface PlacedLoad extends PlannedLoad {
  readonly at: number;
}

interface Kept {
  readonly key: DataView;
  readonly reading: Reading;
}

const slots = 1024;

/**
 * The bytes of an object as far as a record has them: what was planned in its places, zeros between. A Future is seen in few states,
 * so what was made of the same loads before is given again; a table with one entry a hash keeps that bounded.
 */
export class RecordReadings {
  readonly #loads: readonly PlacedLoad[];
  /** Where the loads begin and end. */
  readonly #start: number;
  readonly #end: number;
  readonly #kept: (Kept | undefined)[] = new Array(slots).fill(undefined);

  constructor(loads: readonly PlacedLoad[]) {
    this.#loads = loads;
    this.#start = loads.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY);
    this.#end = loads.reduce((most, { at, size }) => Math.max(most, at + size), 0);
  }

  /** The object of `length` bytes whose loads lie `base` bytes from the view's start. */
  read(view: DataView, base: number, length: number): Reading {
    const start = base + this.#start;
    const end = base + this.#end;
    const words = start + (Math.max(end - start, 0) & ~3);
    let hash = length;
    for (let at = start; at < words; at += 4) hash = Math.imul(hash ^ (hash >>> 15) ^ view.getInt32(at), 0x0100_0193);
    for (let at = words; at < end; at++) hash = Math.imul(hash ^ view.getUint8(at), 0x0100_0193);
    const slot = (hash ^ (hash >>> 16)) & (slots - 1);
    const kept = this.#kept[slot];
    if (kept && kept.reading.bytes.length === length && this.#same(kept.key, view, start)) return kept.reading;
    const bytes = new Uint8Array(length);
    for (const { offset, size, at } of this.#loads) {
      if (offset + size > length) continue;
      for (let i = 0; i < size; i++) bytes[offset + i] = view.getUint8(base + at + i);
    }
    const key = new DataView(view.buffer.slice(view.byteOffset + start, view.byteOffset + Math.max(end, start)));
    const reading = new Reading(bytes);
    this.#kept[slot] = { key, reading };
    return reading;
  }

  #same(key: DataView, view: DataView, start: number): boolean {
    const length = key.byteLength;
    let i = 0;
    for (; i + 4 <= length; i += 4) if (key.getInt32(i) !== view.getInt32(start + i)) return false;
    for (; i < length; i++) if (key.getUint8(i) !== view.getUint8(start + i)) return false;
    return true;
  }
}
