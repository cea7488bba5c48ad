import { Reading } from '../calls/index.js';
import type { PlannedLoad } from '../probes/index.js';

/** A load, and its place in the kept bytes. */
export interface PlacedLoad extends PlannedLoad {
  readonly at: number;
}

interface Kept {
  readonly key: DataView;
  readonly reading: Reading;
}

const slots = 1024;
/**
 * What bytes show that were not read. As a state number it is none: a Future would need 253 awaits for it, and one that
 * large inside another.
 */
const unread = 0xff;

/**
 * The bytes of an object that a record has: the planned places are filled, ones lie between. A Future is seen in few
 * states, so the result for equal loads is reused. A table with one entry per hash bounds the memory for that.
 */
export class RecordReadings {
  readonly #loads: readonly PlacedLoad[];
  /**
   * Where the loads lie. The bytes between them belong to other loads and differ in every record, so they are left
   * out.
   */
  readonly #runs: readonly Run[];
  readonly #length: number;
  readonly #kept: (Kept | undefined)[] = new Array(slots).fill(undefined);

  constructor(loads: readonly PlacedLoad[]) {
    this.#loads = loads;
    this.#runs = runsOf(loads);
    this.#length = this.#runs.reduce((sum, { start, end }) => sum + end - start, 0);
  }

  /** The object of `length` bytes whose loads lie `base` bytes from the view's start. */
  read(view: DataView, base: number, length: number): Reading {
    const runs = this.#runs;
    let hash = length;
    for (let i = 0; i < runs.length; i++) {
      const { start, end } = runs[i] as Run;
      let at = base + start;
      for (; at + 4 <= base + end; at += 4) hash = Math.imul(hash ^ (hash >>> 15) ^ view.getInt32(at), 0x0100_0193);
      for (; at < base + end; at++) hash = Math.imul(hash ^ view.getUint8(at), 0x0100_0193);
    }
    const slot = (hash ^ (hash >>> 16)) & (slots - 1);
    const kept = this.#kept[slot];
    if (kept && kept.reading.bytes.length === length && this.#same(kept.key, view, base)) return kept.reading;
    const bytes = new Uint8Array(length).fill(unread);
    for (const { offset, size, at } of this.#loads) {
      if (offset + size > length) continue;
      for (let i = 0; i < size; i++) bytes[offset + i] = view.getUint8(base + at + i);
    }
    const reading = new Reading(bytes);
    this.#kept[slot] = { key: this.#key(view, base), reading };
    return reading;
  }

  #key(view: DataView, base: number): DataView {
    const key = new Uint8Array(this.#length);
    let length = 0;
    for (const { start, end } of this.#runs) {
      key.set(new Uint8Array(view.buffer, view.byteOffset + base + start, end - start), length);
      length += end - start;
    }
    return new DataView(key.buffer);
  }

  #same(key: DataView, view: DataView, base: number): boolean {
    const runs = this.#runs;
    let i = 0;
    for (let run = 0; run < runs.length; run++) {
      const { start, end } = runs[run] as Run;
      let at = base + start;
      for (; at + 4 <= base + end; at += 4, i += 4) if (key.getInt32(i) !== view.getInt32(at)) return false;
      for (; at < base + end; at++, i++) if (key.getUint8(i) !== view.getUint8(at)) return false;
    }
    return true;
  }
}

/** Bytes of a record. */
interface Run {
  readonly start: number;
  end: number;
}

function runsOf(loads: readonly PlacedLoad[]): readonly Run[] {
  const runs: Run[] = [];
  for (const { at, size } of [...loads].sort((a, b) => a.at - b.at)) {
    const last = runs.at(-1);
    if (last?.end === at) last.end += size;
    else runs.push({ start: at, end: at + size });
  }
  return runs;
}
