import { type Addr, addr, distance } from '../../../base/addr.js';
import type { AddressMap } from '../../../base/address-map.js';
import {
  type EventOutput,
  type Here,
  type IdleHart,
  isAlike,
  movesWith,
  type Repeat,
  type Repeats,
} from '../../../calls/index.js';
import type { AwaitLink, PollBegin, PollEnd, RootRef, TraceEvent, Wake } from '../../../trace/index.js';
import { FollowedPlaces } from './followed-places.js';
import type { ImpliedDrops } from './implied-drops.js';
import { type LastCalls, type NotedPoll, noCalls } from './noted.js';
import type { PollTracer } from './tracer.js';
import type { WakeTracer } from './wakes.js';

interface Parts {
  readonly output: EventOutput;
  readonly noted: NotedPoll;
  readonly polls: PollTracer;
  readonly implied: ImpliedDrops;
  readonly wakes: WakeTracer | undefined;
}

/** Whole polls of tasks, which come again and again: each is worked out once. */
export class RepeatedPolls implements Repeats {
  readonly #parts: Parts;
  #events: TraceEvent[] = [];
  /** How many events there were up to each record. */
  #upTo: number[] = [];
  /** Of all that were noted since the last time that they were forgotten. */
  #holds = { still: true };
  #begin: IdleHart | undefined;
  #roots = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  note(hart: IdleHart): void {
    const { output, noted, polls, wakes } = this.#parts;
    this.#begin = hart;
    this.#roots = polls.roots.count;
    this.#events = [];
    this.#upTo = [];
    output.noted = this.#events;
    noted.start(wakes?.lastCalls(hart.hart) ?? noCalls);
  }

  reaches({ kinds, blocks, instants, crossings, catches }: Here): void {
    const { noted, polls, wakes } = this.#parts;
    if (!noted.isOn) return;
    const isOurs =
      !catches &&
      crossings.length === 0 &&
      kinds.every((kind) => kind === polls) &&
      blocks.every(({ kind }) => kind === polls.blocks) &&
      instants.every((kind) => kind === wakes);
    if (!isOurs) noted.isOdd = true;
  }

  understood(): void {
    this.#upTo.push(this.#events.length);
  }

  noted(hart: IdleHart | undefined): Repeat | undefined {
    const { output, noted, polls, implied, wakes } = this.#parts;
    output.noted = undefined;
    noted.isOn = false;
    const { root, isOdd } = noted;
    const begin = this.#begin;
    if (!root || isOdd || !begin || !hart || !isAlike(begin, hart) || root.space !== undefined) return undefined;
    if (polls.roots.count !== this.#roots || polls.roots.ofType(root.future).get(root.address) !== root)
      return undefined;
    const events = this.#events;
    if (!events.every((event) => isPlain(event, root, hart))) return undefined;
    const [first] = events;
    const followed = FollowedPlaces.of(implied, noted, root);
    if (first?.type !== 'poll-begin' || !followed) return undefined;
    const { called, through } = wakes?.lastCalls(hart.hart) ?? noCalls;
    const calls = {
      called: called === noted.earlier.called ? undefined : called,
      through: through === noted.earlier.through ? undefined : through,
    };
    const { rootless, behind, result } = noted;
    const [upTo, holds] = [this.#upTo, this.#holds];
    const known = { followed, calls, rootless: [...rootless], behind: [...behind], result };
    const repeat = new RepeatedPoll(this.#parts, { hart, root, first, events, upTo, holds, ...known });
    return movesWith(distance(repeat.self, root.address), repeat.size) ? repeat : undefined;
  }

  forget(): void {
    this.#holds.still = false;
    this.#holds = { still: true };
  }
}

type PlainEvent = Extract<TraceEvent, { type: 'poll-begin' | 'poll-end' | 'state' | 'derived-poll' | 'wake' }>;

/** Whether an event is made of nothing but its poll. */
function isPlain(event: TraceEvent, root: RootRef, { hart, thread }: IdleHart): event is PlainEvent {
  switch (event.type) {
    case 'poll-begin':
      return event.root === root && event.hart === hart && event.thread === thread && event.stack === undefined;
    case 'poll-end':
      return event.root === root && event.hart === hart && event.thread === thread && !event.wasLost && !!event.begin;
    case 'state':
    case 'derived-poll':
      return event.root === root && event.hart === hart;
    case 'wake':
      return event.hart === hart && (event.by === root || event.by === undefined);
    default:
      return false;
  }
}

interface Made {
  readonly hart: IdleHart;
  readonly root: RootRef;
  readonly first: PollBegin;
  readonly events: readonly TraceEvent[];
  readonly followed: FollowedPlaces;
  /** Undefined: as before it. */
  readonly calls: LastCalls;
  readonly upTo: readonly number[];
  readonly holds: { readonly still: boolean };
  readonly rootless: NotedPoll['rootless'];
  readonly behind: NotedPoll['behind'];
  readonly result: NotedPoll['result'];
}

/** The poll of one task at its place. */
interface Placed {
  readonly root: RootRef;
  /** Of what is followed. */
  readonly followed: readonly Addr[];
  readonly rootless: readonly bigint[];
  /** By wake: see {@link NotedPoll}. */
  readonly behind: readonly (Addr | undefined)[];
  /** By event: the tasks that its wakes wake now. */
  readonly woken: (RootRef | undefined)[];
  /** By event: of its Future, or its waker. */
  readonly addresses: readonly Addr[];
  readonly chains: readonly (readonly AwaitLink[])[];
}

/** Tasks whose addresses are kept. */
const mostPlaced = 128;

/** One that came, of whatever task of that type. */
class RepeatedPoll implements Repeat {
  readonly self: Addr;
  readonly size: number;
  readonly #parts: Parts;
  readonly #made: Made;
  /** By event: the begin of its poll, or of the one around it. */
  readonly #begins: readonly number[];
  readonly #wakes: readonly number[];
  readonly #placed = new Map<RootRef, Placed>();
  readonly #roots: AddressMap<RootRef>;
  /** The one that was found the same last. */
  #present: Placed | undefined;
  /** The events that are emitted now. */
  readonly #now: TraceEvent[] = [];

  constructor(parts: Parts, made: Made) {
    this.#parts = parts;
    this.#made = made;
    const { events, first, root } = made;
    this.#roots = parts.polls.roots.ofType(root.future);
    this.self = first.address;
    this.size = Math.max(first.future.size ?? 0, root.future.size ?? 0, 1);
    this.#wakes = [...events.keys()].filter((i) => events[i]?.type === 'wake');
    this.#begins = events.map((event) =>
      event.type === 'poll-begin'
        ? events.indexOf(event.around as PollBegin)
        : event.type === 'poll-end'
          ? events.indexOf(event.begin as PollBegin)
          : -1,
    );
  }

  isSame(self: Addr, hart: IdleHart): boolean {
    const { root: known, hart: before, holds } = this.#made;
    if (!holds.still || !isAlike(hart, before)) return false;
    const root = this.#roots.get(self === this.self ? known.address : this.#moved(known.address, self));
    if (root === undefined || root.isPart !== known.isPart) return false;
    const placed = this.#placed.get(root) ?? this.#place(root, self);
    if (!this.#isFound(root, placed)) return false;
    this.#present = placed;
    return true;
  }

  emit(self: Addr, times: Float64Array): void {
    const { polls, wakes } = this.#parts;
    const { followed, calls, hart, result } = this.#made;
    const placed = this.#present as Placed;
    const { root } = placed;
    this.#emit(root, placed, times);
    followed.leave(root, placed.followed);
    if (result) polls.roots.polled(root, result);
    const { called, through } = calls;
    if (called || through)
      wakes?.hasCalled(hart.hart, { through, called: called && { ...called, waker: this.#moved(called.waker, self) } });
  }

  #moved(address: Addr, self: Addr): Addr {
    return movesWith(distance(this.self, address), this.size) ? addr(address - this.self + self) : address;
  }

  #place(root: RootRef, self: Addr): Placed {
    if (this.#placed.size >= mostPlaced) this.#placed.clear();
    const moved = (address: Addr): Addr => this.#moved(address, self);
    const { followed, events, rootless, behind } = this.#made;
    const placed: Placed = {
      root,
      followed: followed.addresses.map(moved),
      rootless: rootless.map(({ place }) => moved(place as Addr)),
      behind: behind.map((address) => address && moved(address)),
      woken: [],
      addresses: events.map((event) => moved(event.type === 'wake' ? event.waker : (event as PollBegin).address)),
      chains: events.map((event) =>
        event.type === 'poll-end'
          ? event.chain.map((link) => (link.address === undefined ? link : { ...link, address: moved(link.address) }))
          : [],
      ),
    };
    this.#placed.set(root, placed);
    return placed;
  }

  /** Whether all that it depends on is as it was. */
  #isFound(root: RootRef, { followed, rootless, addresses, behind, woken }: Placed): boolean {
    const { rootless: noRoots, events, followed: places } = this.#made;
    for (let i = 0; i < noRoots.length; i++) if (noRoots[i]?.roots.get(rootless[i] as bigint)) return false;
    for (let i = 0; i < this.#wakes.length; i++) {
      const at = this.#wakes[i] as number;
      const { root: before } = events[at] as Wake;
      const now = this.#parts.wakes?.rootOf(addresses[at] as Addr, behind[i]);
      if ((now === undefined) !== (before === undefined)) return false;
      woken[at] = now;
    }
    return places.isFound(root, followed);
  }

  #emit(root: RootRef, placed: Placed, times: Float64Array): void {
    const { output } = this.#parts;
    const { upTo } = this.#made;
    let i = 0;
    for (let record = 0; record < upTo.length; record++) {
      output.moveTo(times[record] as number);
      for (const end = upTo[record] as number; i < end; i++) {
        const event = this.#event(i, root, placed);
        this.#now[i] = event;
        output.emit(event);
      }
    }
  }

  #event(i: number, root: RootRef, { addresses, chains, woken }: Placed): TraceEvent {
    const { time } = this.#parts.output;
    const known = this.#made.events[i] as PlainEvent;
    const address = addresses[i] as Addr;
    const at = this.#begins[i] as number;
    const begin = at < 0 ? undefined : (this.#now[at] as PollBegin);
    const { hart } = known;
    switch (known.type) {
      case 'poll-begin': {
        const { thread, future, depth, state } = known;
        return {
          type: 'poll-begin',
          time,
          hart,
          thread,
          root,
          future,
          address,
          depth,
          around: begin,
          state,
          stack: undefined,
        };
      }
      case 'poll-end': {
        const { thread, future, depth, result, state } = known;
        const began = (begin as PollBegin).time;
        const chain = chains[i] as PollEnd['chain'];
        return {
          type: 'poll-end',
          time,
          hart,
          thread,
          root,
          future,
          address,
          depth,
          begin,
          began,
          result,
          state,
          chain,
          wasLost: false,
        };
      }
      case 'state': {
        const { future, from, to, derived } = known;
        return { type: 'state', time, hart, root, future, address, from, to, derived };
      }
      case 'derived-poll': {
        const { future, result, state } = known;
        return { type: 'derived-poll', time, hart, root, future, address, result, state };
      }
      default: {
        const { by, caller } = known;
        return { type: 'wake', time, hart, waker: address, root: woken[i], by: by && root, caller };
      }
    }
  }
}
