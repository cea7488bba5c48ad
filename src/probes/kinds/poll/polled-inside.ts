import type { FutureSet, FutureType } from '../../../async/futures/index.js';
import type { Addr } from '../../../base/addr.js';
import { madeOnce } from '../../../base/made-once.js';
import type { AwaitLink, FutureRef, PollEnd, RootRef } from '../../../trace/index.js';
import { holdersOf } from './task-wrappers.js';

/** A Future that a poll has polled, and that is pending: with what it awaits. */
export interface PolledInside extends Pick<PollEnd, 'state' | 'chain'> {
  readonly future: FutureType;
  readonly ref: FutureRef;
  readonly address: Addr;
}

interface Polled {
  readonly root: RootRef;
  readonly self: Addr;
  readonly probe: { readonly future: FutureType; readonly ref: FutureRef };
  inside: PolledInside | undefined | null;
}

/**
 * Follows what is awaited through Futures written by hand, whose bytes do not say what they await: what one has polled
 * and was pending.
 */
export class PolledInsides {
  readonly #futures: FutureSet;
  readonly #holders = new Map<FutureType, ReadonlySet<FutureType>>();

  constructor(futures: FutureSet) {
    this.#futures = futures;
  }

  /** A poll has ended: the one around it has polled this. Of several that are pending nothing says which it awaits. */
  ended(
    { root, self: address, probe: { future, ref } }: Polled,
    outer: Polled | undefined,
    { result, state, chain }: Pick<PollEnd, 'result' | 'state' | 'chain'>,
  ): void {
    if (outer === undefined || outer.root !== root) return;
    const { inside } = outer;
    const isSame = inside?.ref === ref && inside.address === address;
    if (result === 'pending' || result === 'unknown')
      outer.inside = inside === undefined || isSame ? { future, ref, address, state, chain } : null;
    else if (isSame) outer.inside = undefined;
  }

  /** The chain with what it does not say. `tail`: the Future at its end, if its type is known. */
  below(
    { inside, probe }: Polled,
    chain: readonly AwaitLink[],
    tail: () => FutureType | undefined,
  ): readonly AwaitLink[] {
    if (!inside) return chain;
    const { ref, address } = inside;
    const at = chain.findIndex((link) => link.future === ref && link.address === address);
    if (at >= 0) return chain.length - at > inside.chain.length ? chain : [...chain.slice(0, at), ...linksOf(inside)];
    if (chain.length === 0) return probe.future.states.length === 0 ? linksOf(inside) : chain;
    // What is polled by other code, and not awaited, is in no Future that is.
    const last = tail();
    return last && this.#holdersOf(inside.future).has(last) ? [...chain, ...linksOf(inside)] : chain;
  }

  #holdersOf(future: FutureType): ReadonlySet<FutureType> {
    return madeOnce(this.#holders, future, () => holdersOf(this.#futures, new Set([future])));
  }
}

function linksOf({ ref, address, state, chain }: PolledInside): readonly AwaitLink[] {
  return [{ future: ref, typeName: ref.instance, address, state }, ...chain];
}
