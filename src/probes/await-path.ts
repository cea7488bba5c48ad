import type { FutureType } from '../dwarf/index.js';

/** A Future that lies inside another: where, and what it is. */
export interface InnerFuture {
  readonly future: FutureType;
  /** From the start of the outermost Future's bytes. */
  readonly offset: number;
}

/** Await chains deeper than this are cut: a type cannot contain itself, so real ones are far shorter. */
const deepest = 64;

/**
 * The Futures on the way from `outer` to the one at `offset`, by await slots alone and without the bytes: what must be running,
 * inlined, when that inner one is polled. The inner one itself is not part of it. Where several ways lead there (awaits of one
 * Future share their slot), those that end at exactly this type win; undefined where none contains the offset.
 */
export class AwaitPaths {
  readonly #known = new Map<FutureType, Map<FutureType, Map<number, readonly InnerFuture[] | undefined>>>();

  /** The same object for the same question. */
  find(outer: FutureType, offset: number, inner: FutureType): readonly InnerFuture[] | undefined {
    let ofOuter = this.#known.get(outer);
    if (!ofOuter) {
      ofOuter = new Map();
      this.#known.set(outer, ofOuter);
    }
    let ofInner = ofOuter.get(inner);
    if (!ofInner) {
      ofInner = new Map();
      ofOuter.set(inner, ofInner);
    }
    const known = ofInner.get(offset);
    if (known !== undefined || ofInner.has(offset)) return known;
    const found = search(outer, offset, inner);
    ofInner.set(offset, found);
    return found;
  }
}

function search(outer: FutureType, offset: number, inner: FutureType): readonly InnerFuture[] | undefined {
  let containing: readonly InnerFuture[] | undefined;
  const visit = (future: FutureType, base: number, way: readonly InnerFuture[]): readonly InnerFuture[] | undefined => {
    if (way.length > deepest) return undefined;
    for (const { awaitee } of future.states) {
      if (!awaitee?.future) continue;
      const at = base + awaitee.offset;
      if (at === offset && awaitee.future === inner) return way;
      if (offset < at || offset >= at + awaitee.size) continue;
      const longer = [...way, { future: awaitee.future, offset: at }];
      const found = visit(awaitee.future, at, longer);
      if (found) return found;
      // A hand-written Future (a join, a select) has no await slots: the way ends inside it.
      if (awaitee.future.discriminant === undefined) containing ??= longer;
    }
    return undefined;
  };
  return visit(outer, 0, []) ?? containing;
}
