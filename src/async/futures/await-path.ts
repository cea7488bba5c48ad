import { madeOnce } from '../../base/made-once.js';
import type { FutureState, FutureType, HeldFuture } from './types.js';

/** A Future inside another: its place and its type. */
export interface InnerFuture {
  readonly future: FutureType;
  /** From the start of the outermost Future's bytes. */
  readonly offset: number;
}

/** A poll with an address of its own inside an outer Future's. */
export interface InnerPoll {
  /** The Futures on the way to it, by await slots alone. They must be running, inlined, when it begins. */
  readonly way: readonly InnerFuture[];
  /**
   * The Future itself, if the last of these awaits it. Undefined if the last one polls it in its own way (a join, a
   * select).
   */
  readonly inner: InnerFuture | undefined;
}

/** Await chains deeper than this are cut: a type cannot contain itself, so real ones are far shorter. */
const deepest = 64;

/** A program has few such questions. A damaged one might have many ways to each answer. */
const mostVisits = 10_000;

/** Finds, from types alone, the inlined Futures through which `outer` polls the one at an offset. */
export class AwaitPaths {
  readonly #known = new Map<FutureType, Map<readonly FutureType[], Map<number, InnerPoll | undefined>>>();

  /**
   * The same question gives the same object. `inner`: the Futures that this poll function may belong to.
   * @returns undefined if types do not say: several ways lead there, or none
   */
  find(outer: FutureType, offset: number, inner: readonly FutureType[]): InnerPoll | undefined {
    const ofOuter = madeOnce(this.#known, outer, () => new Map());
    const ofInner = madeOnce(ofOuter, inner, () => new Map());
    const known = ofInner.get(offset);
    if (known !== undefined || ofInner.has(offset)) return known;
    const found = new Search(offset, inner).in(outer);
    ofInner.set(offset, found);
    return found;
  }
}

/** Looks for every way; awaits of one Future share their slot, and awaits of different ones share bytes. */
class Search {
  readonly #offset: number;
  readonly #inner: readonly FutureType[];
  /** Behind the last byte of the smallest of them. */
  readonly #end: number;
  readonly #found = new Map<string, InnerPoll>();
  #visits = 0;

  constructor(offset: number, inner: readonly FutureType[]) {
    this.#offset = offset;
    this.#inner = inner;
    this.#end = offset + Math.min(...inner.map(({ size }) => size));
  }

  in(outer: FutureType): InnerPoll | undefined {
    this.#visit(outer, 0, [], false);
    const [only, ...others] = this.#found.values();
    return others.length > 0 || this.#visits > mostVisits ? undefined : only;
  }

  /** `kept`: an outer Future keeps another one at the offset while it awaits this one. */
  #visit(future: FutureType, base: number, way: readonly InnerFuture[], kept: boolean): void {
    if (way.length > deepest) return;
    for (const state of future.states) {
      const { awaitee } = state;
      if (!awaitee || ++this.#visits > mostVisits) continue;
      const at = base + awaitee.offset;
      const keptHere = kept || this.#keeps(state, base);
      // A Future that is awaited through a pointer may be kept by its awaiter.
      if (awaitee.box) {
        if (keptHere) this.#add(way, undefined);
        continue;
      }
      const link = awaitee.future && { future: awaitee.future, offset: at };
      if (!link) continue;
      if (at === this.#offset && this.#inner.includes(link.future)) this.#add(way, link);
      const within = this.#offset >= at && this.#end <= at + awaitee.size;
      if (link.future.discriminant !== undefined) {
        if (within || keptHere) this.#visit(link.future, at, [...way, link], keptHere);
      } else if (keptHere || (within && !this.#inner.includes(link.future))) this.#add([...way, link], undefined);
    }
  }

  /** Whether a state keeps a Future at the offset in addition to the one that it awaits. */
  #keeps({ holds }: FutureState, base: number): boolean {
    const covers = ({ offset, size, repeats }: HeldFuture): boolean => {
      const length = repeats.reduce((sum, { count, stride }) => sum + (count - 1) * stride, size);
      return this.#offset >= base + offset && this.#end <= base + offset + length;
    };
    return holds.some((held) => held.role !== 'awaitee' && held.hops.length === 0 && covers(held));
  }

  #add(way: readonly InnerFuture[], inner: InnerFuture | undefined): void {
    const key = [...way, ...(inner ? [inner] : [])]
      .map(({ future, offset }) => `${offset} ${future.typeOffset}`)
      .join();
    if (!this.#found.has(key)) this.#found.set(key, { way, inner });
  }
}
