import type { Addr } from '../../../base/addr.js';
import type { AddressMap } from '../../../base/address-map.js';
import type { FutureRef, RootRef } from '../../../trace/index.js';
import type { Followed } from './implied-drops.js';
import type { Called, Through } from './wakes.js';

/** What was followed at a place before a poll that is noted. */
export interface NotedPlace {
  readonly ref: FutureRef;
  readonly place: bigint;
  readonly before: Followed | undefined;
  /** The state of it then. */
  readonly was: Pick<Followed, 'is' | 'state'> | undefined;
}

/** The last calls of a hart: of a wake function, and of a method that calls one. */
export interface LastCalls {
  readonly called: Called | undefined;
  readonly through: Through | undefined;
}

export const noCalls: LastCalls = { called: undefined, through: undefined };

/** What a task's poll depends on besides its records, while that is noted. */
export class NotedPoll {
  isOn = false;
  /** It depends on what is not kept here. */
  isOdd = false;
  root: RootRef | undefined;
  /** Those before it. */
  earlier = noCalls;
  /** The result of the task's own poll. */
  result: 'pending' | 'unknown' | undefined;
  /** Of each wake that is emitted, the Future that its waker leads to, if that was read. */
  readonly behind: (Addr | undefined)[] = [];
  /** Places at which no root may be. */
  readonly rootless: { readonly roots: AddressMap<RootRef>; readonly place: bigint }[] = [];
  /** By Future and place. */
  readonly followed = new Map<FutureRef, Map<bigint, NotedPlace>>();

  start(earlier: LastCalls): void {
    this.earlier = earlier;
    this.isOn = true;
    this.isOdd = false;
    this.root = undefined;
    this.result = undefined;
    this.behind.length = 0;
    this.rootless.length = 0;
    this.followed.clear();
  }

  /** The poll is one of this task, whose Futures are `held`. */
  of(root: RootRef, held: Iterable<Followed>): void {
    if (this.root) this.isOdd = true;
    this.root = root;
    for (const one of held) this.asked(one.future, one.address, one);
  }

  /** What is followed at a place decides something. */
  asked(ref: FutureRef, place: bigint, before: Followed | undefined): void {
    const places = this.followed.get(ref) ?? new Map<bigint, NotedPlace>();
    this.followed.set(ref, places);
    if (places.has(place)) return;
    const was = before && { is: before.is, state: before.state };
    places.set(place, { ref, place, before, was });
    if (before && before.root !== this.root) this.isOdd = true;
  }

  /** A Future is new, and no root that is known. */
  isNew(roots: AddressMap<RootRef>, place: bigint): void {
    if (roots.get(place)) this.isOdd = true;
    this.rootless.push({ roots, place });
  }
}
