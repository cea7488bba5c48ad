const slots = 4096;

/**
 * Words of records as bigints. The same addresses come again and again, and a new bigint costs an allocation and a
 * comparison by value. So the last bigint of each hash is kept.
 */
export class WordCache {
  readonly #low = new Uint32Array(slots);
  readonly #high = new Uint32Array(slots);
  readonly #values: bigint[] = new Array(slots).fill(0n);

  at(view: DataView, offset: number): bigint {
    const low = view.getUint32(offset, true);
    const high = view.getUint32(offset + 4, true);
    const slot = ((low >>> 2) ^ (low >>> 14) ^ (low >>> 26) ^ high) & (slots - 1);
    if (this.#low[slot] === low && this.#high[slot] === high) return this.#values[slot] as bigint;
    const value = view.getBigUint64(offset, true);
    this.#low[slot] = low;
    this.#high[slot] = high;
    this.#values[slot] = value;
    return value;
  }
}

/**
 * What is known of a word, asked for once. The same words come again and again, most often the one before, and a Map
 * of bigints is slow.
 */
export function remembered(find: (word: bigint) => number): (word: bigint) => number {
  const known = new Map<bigint, number>();
  let last: bigint | undefined;
  let found = 0;
  return (word) => {
    if (word === last) return found;
    found = known.get(word) ?? find(word);
    known.set(word, found);
    last = word;
    return found;
  };
}
