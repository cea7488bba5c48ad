import { madeOnce } from '../../base/made-once.js';

/** Events that are alike: what made that which is kept of them, and by what it is found again. */
interface Way<B> {
  readonly make: unknown;
  readonly one: unknown;
  readonly two: unknown;
  readonly three: unknown;
  readonly four: unknown;
  readonly made: B;
}

interface Known<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
}

/**
 * What is written of events that come in the same few ways over and over: the last ones of each key, found again by the
 * identity of what an event names. A full list is emptied.
 */
export class Ways<K, B> {
  readonly #known: Known<K, Way<B>[]>;
  readonly #most: number;

  /** `most`: kept of one key. */
  constructor(known: Known<K, Way<B>[]>, most: number) {
    this.#known = known;
    this.#most = most;
  }

  of<E, One, Two>(
    key: K,
    event: E,
    make: (event: E, one: One, two: Two) => B,
    one: One,
    two: Two,
    three?: unknown,
    four?: unknown,
  ): B {
    const ways = this.#known.get(key) ?? madeOnce(this.#known, key, () => []);
    for (const way of ways) {
      const isSame = way.make === make && way.one === one && way.two === two;
      if (isSame && way.three === three && way.four === four) return way.made;
    }
    const made = make(event, one, two);
    if (ways.length === this.#most) ways.length = 0;
    ways.push({ make, one, two, three, four, made });
    return made;
  }
}
