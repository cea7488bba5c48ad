/** What of a Map {@link madeOnce} needs. */
interface Known<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
}

/** The value of a key, which is made the first time that it is asked for. */
export function madeOnce<K, V>(known: Known<K, V>, key: K, make: () => V): V {
  let value = known.get(key);
  if (value === undefined) {
    value = make();
    known.set(key, value);
  }
  return value;
}

/** Adds to the list of a key. */
export function addTo<K, V>(known: Known<K, V[]>, key: K, value: V): void {
  madeOnce(known, key, () => []).push(value);
}

/** Numbers things in the order in which they come, from 0. */
export class Numbered<K> {
  readonly all: K[] = [];
  readonly #numbers = new Map<K, number>();

  of(key: K): number {
    return madeOnce(this.#numbers, key, () => this.all.push(key) - 1);
  }
}
