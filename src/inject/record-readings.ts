import { Reading } from '../calls/index.js';
import type { PlannedLoad } from '../probes/index.js';

/** A load, and its place in the kept bytes. */
export interface PlacedLoad extends PlannedLoad {
  readonly at: number;
}

interface Kept {
  /** The words and bytes that were read, in the order of their places. */
  readonly key: Int32Array;
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
   * Where the loads lie, in words of four bytes and in bytes beside these. What is between them belongs to other loads
   * and differs in every record, so it is left out.
   */
  readonly #words: readonly number[];
  readonly #octets: readonly number[];
  readonly #kept: (Kept | undefined)[] = new Array(slots).fill(undefined);

  constructor(loads: readonly PlacedLoad[]) {
    this.#loads = loads;
    const runs = runsOf(loads);
    this.#words = runs.flatMap(({ start, end }) => steps(start, end - 3, 4));
    this.#octets = runs.flatMap(({ start, end }) => steps(end - ((end - start) % 4), end, 1));
  }

  /** The object of `length` bytes whose loads lie `base` bytes from the view's start. */
  read(view: DataView, base: number, length: number): Reading {
    const words = this.#words;
    const octets = this.#octets;
    let hash = length;
    for (let i = 0; i < words.length; i++)
      hash = Math.imul(hash ^ (hash >>> 15) ^ view.getInt32(base + (words[i] as number), true), 0x0100_0193);
    for (let i = 0; i < octets.length; i++)
      hash = Math.imul(hash ^ view.getUint8(base + (octets[i] as number)), 0x0100_0193);
    const slot = (hash ^ (hash >>> 16)) & (slots - 1);
    const kept = this.#kept[slot];
    if (kept !== undefined && kept.reading.bytes.length === length && this.#isSame(kept.key, view, base))
      return kept.reading;
    const bytes = new Uint8Array(length).fill(unread);
    for (const { offset, size, at } of this.#loads) {
      if (offset + size > length) continue;
      for (let i = 0; i < size; i++) bytes[offset + i] = view.getUint8(base + at + i);
    }
    const reading = new Reading(bytes);
    const key = [...words.map((at) => view.getInt32(base + at, true)), ...octets.map((at) => view.getUint8(base + at))];
    this.#kept[slot] = { key: Int32Array.from(key), reading };
    return reading;
  }

  #isSame(key: Int32Array, view: DataView, base: number): boolean {
    const words = this.#words;
    const octets = this.#octets;
    for (let i = 0; i < words.length; i++)
      if (key[i] !== view.getInt32(base + (words[i] as number), true)) return false;
    for (let i = 0; i < octets.length; i++)
      if (key[words.length + i] !== view.getUint8(base + (octets[i] as number))) return false;
    return true;
  }
}

/** From one number to before another. */
function steps(from: number, end: number, step: number): number[] {
  const all: number[] = [];
  for (let at = from; at < end; at += step) all.push(at);
  return all;
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
