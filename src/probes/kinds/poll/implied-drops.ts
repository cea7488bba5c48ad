import type { FutureType } from '../../../async/futures/index.js';
import type { Addr } from '../../../base/addr.js';
import { AddressMap, inSpace } from '../../../base/address-map.js';
import type { EventOutput } from '../../../calls/index.js';
import {
  type AwaitLink,
  type Cancelled,
  type FutureRef,
  isSuspended,
  type ProbeFact,
  type RootRef,
  type StateRef,
} from '../../../trace/index.js';
import { recordedCoverage, type SeenFuture } from './coverage.js';
import type { DropFunction } from './drop-functions.js';

/** A Future that was polled and, as far as is known, is not ready. */
interface Polled {
  readonly root: RootRef;
  readonly future: FutureRef;
  readonly address: Addr;
  /** `unknown`: its last poll was inlined and showed no result. `dropped`: its holder was, and that was emitted. */
  is: 'pending' | 'unknown' | 'dropped';
  state: StateRef | undefined;
}

/** A Future at a place, whose poll begins or has ended. */
export interface PolledPlace {
  readonly root: RootRef;
  readonly ref: FutureRef;
  readonly self: Addr;
}

/** What may be followed. */
interface Followed {
  /** How the polls of each Future are seen. */
  readonly coverage: readonly SeenFuture[];
  readonly ref: (future: FutureType) => FutureRef;
  /** The probed functions that drop. */
  readonly drops: readonly DropFunction[];
  /** Futures of which some are dropped elsewhere. */
  readonly hidden: ReadonlySet<FutureType>;
}

/**
 * Drops of Futures that no function call shows, because the compiler inlined them. What follows shows them. A Future
 * made by the compiler does not move once it was polled. It is dropped before its memory is used again (the contract
 * of `Pin`, std::pin, "Drop guarantee"). So one that is pending was dropped in two cases:
 *
 * - Another of its type is polled for the first time at the same address.
 * - A Future made by the compiler that holds it is ready, or unwound.
 *
 * Only those are followed of which every poll is seen: one that became ready unseen would look the same.
 */
export class ImpliedDrops {
  readonly #output: EventOutput;
  #coverage: readonly SeenFuture[];
  readonly #ref: (future: FutureType) => FutureRef;
  readonly #drops: readonly DropFunction[];
  /** Futures of which some drops leave no mark. */
  readonly #unseen: Set<FutureType>;
  /** The Futures that are followed. */
  #followed: Map<FutureRef, AddressMap<Polled>>;
  /** The same by task, which hold few. */
  readonly #ofRoot = new Map<RootRef, Set<Polled>>();

  constructor(output: EventOutput, { coverage, ref, drops, hidden }: Followed) {
    this.#output = output;
    this.#coverage = coverage;
    this.#ref = ref;
    this.#drops = drops;
    this.#unseen = new Set(hidden);
    this.#followed = this.#seenExactly();
  }

  /** A poll begins: `isFirst` if the Future is in the state that it was made in, undefined if that was not read. */
  began({ root, ref, self }: PolledPlace, isFirst: boolean | undefined, hart: number): void {
    const last = this.#followed.get(ref)?.get(inSpace(self, root.space));
    if (!last || isFirst === false) return;
    this.#remove(last);
    if (last.is !== 'pending') return;
    // Nobody but its own poll may drop a part of a task that stays.
    if (isFirst) this.#emit(last, last.root === root ? root : undefined, 'replaced', hart);
  }

  /** A poll ended, and the Future is not ready, or nothing shows whether it is. */
  polled({ root, ref, self }: PolledPlace, is: 'pending' | 'unknown', state: StateRef | undefined): void {
    const all = this.#followed.get(ref);
    if (!all) return;
    const place = inSpace(self, root.space);
    const last = all.get(place);
    if (last?.root === root && last.is !== 'dropped') {
      last.is = is;
      last.state = state;
      return;
    }
    if (last) this.#remove(last);
    const now: Polled = { root, future: ref, address: self, is, state };
    all.set(place, now);
    const ofRoot = this.#ofRoot.get(root);
    if (ofRoot) ofRoot.add(now);
    else this.#ofRoot.set(root, new Set([now]));
  }

  /** A Future that is pending awaits these. */
  awaited(chain: readonly AwaitLink[], space?: Addr): void {
    for (const { future, address, state } of chain) {
      if (!future || address === undefined) continue;
      const last = this.#followed.get(future)?.get(inSpace(address, space));
      if (last?.is !== 'unknown' || !isSuspended(state)) continue;
      last.is = 'pending';
      last.state = state;
    }
  }

  /** The Future at this address is ready, was dropped, or nobody knows what it is: nothing is said of it. */
  over({ ref, self, root: { space } }: Omit<PolledPlace, 'root'> & { readonly root: Pick<RootRef, 'space'> }): void {
    const last = this.#followed.get(ref)?.get(inSpace(self, space));
    if (last) this.#remove(last);
  }

  /** A Future made by the compiler has ended, and with it what it held. */
  ended({ root, self }: PolledPlace, size: number, hart: number): void {
    for (const held of this.#heldBy(root, self, size)) {
      this.#remove(held);
      if (held.is === 'pending') this.#emit(held, root, 'holder-ended', hart);
    }
  }

  /** The same of one that is being dropped. A function that drops what it holds may come: see {@link wasEmitted}. */
  dropped(
    {
      future,
      address,
      root,
      by,
      space,
    }: Pick<Cancelled, 'future' | 'address' | 'root' | 'by'> & Pick<RootRef, 'space'>,
    hart: number,
  ): void {
    this.over({ ref: future, self: address, root: { space } });
    for (const held of root ? this.#heldBy(root, address, future.size ?? 0) : nothing) {
      if (held.is !== 'pending') continue;
      this.#ofRoot.get(held.root)?.delete(held);
      held.is = 'dropped';
      this.#emit(held, by, 'holder-ended', hart);
    }
  }

  /** Whether its drop was emitted when its holder was dropped. */
  wasEmitted(future: FutureRef, address: Addr, space?: Addr): boolean {
    return this.#followed.get(future)?.get(inSpace(address, space))?.is === 'dropped';
  }

  #heldBy(root: RootRef, self: Addr, size: number): readonly Polled[] {
    const all = this.#ofRoot.get(root);
    if (!all) return nothing;
    // What it lies in may begin where it does.
    return [...all].filter(
      ({ address, future }) => address >= self && Number(address - self) + (future.size ?? 0) <= size,
    );
  }

  /** Events are missing: what is pending may have ended meanwhile, and another one may lie where one was dropped. */
  forget(): void {
    for (const polled of this.#followed.values()) polled.clear();
    this.#ofRoot.clear();
  }

  /** Probes are left out, or are switched off from now on: on polls, or on functions that drop. */
  leftOut(probes: readonly ProbeFact[]): void {
    const addresses = new Set<bigint>(probes.flatMap(({ engine, address }) => (engine === 'none' ? [address] : [])));
    for (const { address, targets } of this.#drops)
      if (addresses.has(address)) for (const { future } of targets) this.#unseen.add(future);
    this.#coverage = recordedCoverage(this.#coverage, { engines: probes });
    const before = this.#followed;
    this.#followed = this.#seenExactly();
    for (const [ref, polled] of before) {
      if (this.#followed.has(ref)) this.#followed.set(ref, polled);
      // One that is not followed any more may get ready unseen.
      else for (const one of polled.values()) this.#ofRoot.get(one.root)?.delete(one);
    }
  }

  #seenExactly(): Map<FutureRef, AddressMap<Polled>> {
    const exact = this.#coverage.flatMap(({ future, seen }) => (seen === 'exact' ? [future] : []));
    const followed = exact.filter((future) => isCompiled(future) && this.#unseen.has(future));
    return new Map(followed.map((future) => [this.#ref(future), new AddressMap<Polled>(64)]));
  }

  #remove(one: Polled): void {
    this.#followed.get(one.future)?.delete(inSpace(one.address, one.root.space));
    const held = this.#ofRoot.get(one.root);
    held?.delete(one);
    if (held?.size === 0) this.#ofRoot.delete(one.root);
  }

  #emit(
    { root, future, address, state }: Polled,
    by: RootRef | undefined,
    implied: NonNullable<Cancelled['implied']>,
    hart: number,
  ): void {
    const { time } = this.#output;
    this.#output.emit({ type: 'cancelled', time, hart, root, future, address, state, by, caller: nowhere, implied });
  }
}

const nothing: readonly Polled[] = [];
const nowhere = { function: undefined, file: undefined, line: undefined } as const;

/** Made by the compiler from an async fn or block. */
export function isCompiled({ states }: FutureType): boolean {
  return states.some(({ name }) => name === 'Returned');
}
