/** Packets that are kept, one a hash. */
const SLOTS = 1 << 14;
/** Longer ones have texts of their own and do not come again. */
const LONGEST = 256;

interface Kept<T> {
  /** In whole words, the last one filled with zeros. */
  readonly words: Int32Array;
  readonly length: number;
  readonly value: T;
  /** It has come since another one wanted its place. */
  isUsed: boolean;
}

/**
 * What packets mean, by their bytes behind the time. A program does the same things again and again. So most packets
 * differ in their times alone, and looking one up costs less than decoding it.
 */
export class Repeats<T> {
  #kept: (Kept<T> | undefined)[] = new Array(SLOTS).fill(undefined);
  /** Hashes that were asked for in vain: what comes once is not kept. */
  readonly #missed = new Int32Array(SLOTS);
  #bytes: Uint8Array = new Uint8Array(0);
  #view = new DataView(this.#bytes.buffer);
  #hash = 0;

  clear(): void {
    this.#kept = new Array(SLOTS).fill(undefined);
  }

  find(bytes: Uint8Array, from: number, to: number): T | undefined {
    this.#hash = 0;
    if (to - from > LONGEST) return undefined;
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    const view = this.#view;
    let hash = to - from;
    let at = from;
    for (; at + 4 <= to; at += 4) hash = Math.imul(hash ^ view.getInt32(at, true), 0x9e37_79b1);
    hash = Math.imul((hash ^ (hash >>> 15)) + lastWord(bytes, at, to), 0x85eb_ca6b);
    hash ^= hash >>> 13;
    this.#hash = hash === 0 ? 1 : hash;
    const kept = this.#kept[hash & (SLOTS - 1)];
    if (kept === undefined || kept.length !== to - from || !this.#isAt(kept.words, from, to)) return undefined;
    kept.isUsed = true;
    return kept.value;
  }

  /**
   * Whether what was looked for last is to be kept: it has been looked for before, and nothing better has its place.
   */
  isWanted(): boolean {
    const hash = this.#hash;
    if (hash === 0) return false;
    const slot = hash & (SLOTS - 1);
    const isAgain = this.#missed[slot] === hash;
    this.#missed[slot] = hash;
    const kept = this.#kept[slot];
    if (!isAgain || kept === undefined || !kept.isUsed) return isAgain;
    kept.isUsed = false;
    return false;
  }

  /** Keeps what these bytes mean, which were looked for last. */
  keep(bytes: Uint8Array, from: number, to: number, value: T): void {
    const words = new Int32Array(Math.ceil((to - from) / 4));
    new Uint8Array(words.buffer).set(bytes.subarray(from, to));
    this.#kept[this.#hash & (SLOTS - 1)] = { words, length: to - from, value, isUsed: true };
  }

  #isAt(words: Int32Array, from: number, to: number): boolean {
    const view = this.#view;
    let at = from;
    let i = 0;
    for (; at + 4 <= to; at += 4, i++) if (words[i] !== view.getInt32(at, true)) return false;
    return at === to || words[i] === lastWord(this.#bytes, at, to);
  }
}

/** Up to three bytes, little-endian as typed arrays are on the hosts of Node. */
function lastWord(bytes: Uint8Array, from: number, to: number): number {
  let word = 0;
  for (let at = to - 1; at >= from; at--) word = (word << 8) | (bytes[at] as number);
  return word;
}
