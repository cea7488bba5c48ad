import { type Addr, addr } from '../../../base/addr.js';
import type {
  AnyBegin,
  AnyEnd,
  FunctionRef,
  FutureRef,
  GuestNanos,
  PlaceRef,
  RootRef,
  ThreadRef,
  TraceEvent,
  WatchRef,
} from '../../events/events.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Numbers that are not yet used by any trace of a merge. */
export class Numbers {
  functions = 0;
  futures = 0;
  roots = 0;
  threads = 0;
  watches = 0;
  places = 0;
  harts = 0;
  /** Which trace has tasks at an address. */
  readonly owners = new Map<Addr, Renumber>();
}

/** Where the number of a trace stands in an address that another trace has tasks at, too. */
const OWNER_SHIFT = 56n;

/** One of the traces that are merged. */
interface MergedTrace {
  /** Its place among them. */
  readonly index: number;
  /** How much later its events are, in nanoseconds. */
  readonly offset: number;
}

/**
 * The events of one trace as a merged one has them. They are later by an offset, and no other trace has their numbers
 * of harts, functions and tasks. Two traces may have tasks at one address, which elsewhere says that one is
 * over. So the later trace's get its number into the highest byte.
 */
export class Renumber {
  readonly #numbers: Numbers;
  readonly #trace: MergedTrace;
  readonly #harts: number[] = [];
  readonly #functions = new Map<FunctionRef, FunctionRef>();
  readonly #futures = new Map<FutureRef, Writable<FutureRef>>();
  readonly #roots = new WeakMap<RootRef, { readonly root: Writable<RootRef>; readonly tag: bigint }>();
  readonly #threads = new Map<ThreadRef, ThreadRef>();
  readonly #watches = new Map<WatchRef, WatchRef>();
  readonly #places = new Map<PlaceRef, PlaceRef>();
  readonly #begins = new WeakMap<AnyBegin, AnyBegin>();

  constructor(numbers: Numbers, trace: MergedTrace) {
    this.#numbers = numbers;
    this.#trace = trace;
  }

  hart(number: number): number {
    let known = this.#harts[number];
    if (known === undefined) {
      known = this.#numbers.harts++;
      this.#harts[number] = known;
    }
    return known;
  }

  event(event: TraceEvent): TraceEvent {
    switch (event.type) {
      case 'call-begin':
      case 'poll-begin':
        return this.#begin(event);
      case 'call-end':
      case 'call-lost':
      case 'poll-end':
      case 'poll-lost':
        return this.#end(event);
      case 'gap':
        return { ...event, from: this.#time(event.from), to: this.#time(event.to) };
      case 'reset':
      case 'console':
        return { ...event, time: this.#time(event.time) };
      case 'state':
      case 'derived-poll':
        return { ...event, ...this.#at(event), ...this.#ofRoot(event) };
      case 'watch':
        return { ...event, ...this.#at(event), watch: this.#watch(event.watch) };
      case 'cancelled': {
        const { root, by, future } = event;
        const about = { root: root && this.#root(root).root, by: by && this.#root(by).root };
        return { ...event, ...this.#at(event), ...about, future: this.#future(future) };
      }
      case 'stuck': {
        const { root, future, time } = event;
        return { ...event, time: this.#time(time), root: root && this.#root(root).root, future: this.#future(future) };
      }
      case 'sample':
        return { ...event, ...this.#at(event) };
      case 'place':
        return { ...event, ...this.#at(event), place: this.#place(event.place) };
      case 'wake': {
        const { root, by } = event;
        return { ...event, ...this.#at(event), root: root && this.#root(root).root, by: by && this.#root(by).root };
      }
    }
  }

  #begin(event: AnyBegin): AnyBegin {
    const { thread, around } = event;
    const where = {
      ...this.#at(event),
      thread: thread && this.#thread(thread),
      around: around && this.#begins.get(around),
    };
    const begin: AnyBegin =
      event.type === 'call-begin'
        ? { ...event, ...where, function: this.#function(event.function) }
        : { ...event, ...where, ...this.#ofRoot(event) };
    this.#begins.set(event, begin);
    return begin;
  }

  #end(event: AnyEnd): AnyEnd {
    const { thread, begin, began } = event;
    const where = {
      ...this.#at(event),
      thread: thread && this.#thread(thread),
      began: this.#time(began),
    };
    const known = begin && this.#begins.get(begin);
    if (event.type === 'call-end' || event.type === 'call-lost') {
      return { ...event, ...where, begin: known as typeof event.begin, function: this.#function(event.function) };
    }
    return { ...event, ...where, begin: known as typeof event.begin, ...this.#ofRoot(event) };
  }

  #at({ time, hart }: { readonly time: GuestNanos; readonly hart: number }): { time: GuestNanos; hart: number } {
    return { time: this.#time(time), hart: this.hart(hart) };
  }

  #time(time: GuestNanos): GuestNanos {
    return (time + this.#trace.offset) as GuestNanos;
  }

  #ofRoot(event: { readonly root: RootRef; readonly future: FutureRef; readonly address: Addr }) {
    const { root, tag } = this.#root(event.root);
    return {
      root,
      future: this.#future(event.future),
      address: tag === 0n ? event.address : addr(event.address ^ tag),
    };
  }

  /** Of what Future a root is, may be learnt later. */
  #root(root: RootRef): { readonly root: Writable<RootRef>; readonly tag: bigint } {
    let known = this.#roots.get(root);
    if (known === undefined) {
      const { owners } = this.#numbers;
      const owner = owners.get(root.address) ?? this;
      if (owner === this) owners.set(root.address, this);
      const tag = owner === this ? 0n : BigInt(this.#trace.index) << OWNER_SHIFT;
      const address = addr(root.address ^ tag);
      const future = this.#future(root.future);
      known = { root: { ...root, key: this.#numbers.roots++, future, address }, tag };
      this.#roots.set(root, known);
    }
    known.root.future = this.#future(root.future);
    return known;
  }

  /** Its place may be learnt later. */
  #future(future: FutureRef): FutureRef {
    let known = this.#futures.get(future);
    if (known === undefined) {
      known = { ...future, key: this.#numbers.futures++ };
      this.#futures.set(future, known);
    } else if (known.file === undefined && future.file !== undefined) {
      known.file = future.file;
      known.line = future.line;
    }
    return known;
  }

  #function(fn: FunctionRef): FunctionRef {
    return kept(this.#functions, fn, () => this.#numbers.functions++);
  }

  #thread(thread: ThreadRef): ThreadRef {
    return kept(this.#threads, thread, () => this.#numbers.threads++);
  }

  #watch(watch: WatchRef): WatchRef {
    return kept(this.#watches, watch, () => this.#numbers.watches++);
  }

  #place(place: PlaceRef): PlaceRef {
    return kept(this.#places, place, () => this.#numbers.places++);
  }
}

/** The same thing with a number of its own, the same object each time. */
function kept<T extends { readonly key: number }>(known: Map<T, T>, thing: T, number: () => number): T {
  let found = known.get(thing);
  if (found === undefined) {
    found = { ...thing, key: number() };
    known.set(thing, found);
  }
  return found;
}
