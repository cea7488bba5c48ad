import { type Addr, addr } from '../../../base/addr.js';
import { madeOnce } from '../../../base/made-once.js';
import type { AnyBegin, CallBegin, RootRef, TraceEvent } from '../../events/events.js';
import { isBegin } from '../../events/open-calls.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Members of events that are times, and those that name a thing with a number of its own. */
const times = ['time', 'from', 'to', 'began'];
const things = ['function', 'future', 'thread', 'watch', 'place'];

interface Thing {
  readonly key: number;
  readonly space?: Addr | undefined;
  readonly lock?: string | undefined;
  file?: string | undefined;
  line?: number | undefined;
}

/** Numbers that are not yet used by any trace of a merge. */
export class Numbers {
  readonly #next = new Map<string, number>();
  /** Which trace has tasks at an address, address spaces, and locks. */
  readonly owners = new Map<Addr, Renumber>();
  readonly spaces = new Map<Addr, Renumber>();
  readonly locks = new Map<string, Renumber>();

  /** `kind`: numbers of one kind are apart. */
  next(kind: string): number {
    const number = this.#next.get(kind) ?? 0;
    this.#next.set(kind, number + 1);
    return number;
  }
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
 * over. So those of the trace that has it later get that trace's number, from 1 on, into the highest byte and above.
 * So do address spaces; a lock has it behind its address.
 */
export class Renumber {
  readonly #numbers: Numbers;
  readonly #trace: MergedTrace;
  readonly #harts = new Map<number, number>();
  readonly #things = new Map<Thing, Thing>();
  readonly #roots = new WeakMap<RootRef, { readonly root: Writable<RootRef>; readonly tag: bigint }>();
  readonly #begins = new WeakMap<AnyBegin, AnyBegin>();

  constructor(numbers: Numbers, trace: MergedTrace) {
    this.#numbers = numbers;
    this.#trace = trace;
  }

  hart(number: number): number {
    return madeOnce(this.#harts, number, () => this.#numbers.next('hart'));
  }

  event(event: TraceEvent): TraceEvent {
    const members: Record<string, unknown> = { ...event };
    for (const name of times) {
      const time = members[name];
      if (typeof time === 'number') members[name] = time + this.#trace.offset;
    }
    if ('hart' in event) members.hart = this.hart(event.hart);
    if ('root' in event && event.root) {
      const { root, tag } = this.#root(event.root);
      members.root = root;
      if (tag !== 0n && 'address' in event) members.address = addr(event.address ^ tag);
    }
    if (event.type === 'call-begin' && event.function.kind === 'lock') members.arguments = this.#lockArguments(event);
    for (const name of things) {
      const thing = members[name];
      if (thing !== undefined) members[name] = this.#thing(name, thing as Thing);
    }
    if ('by' in event && event.by && event.type !== 'watch') members.by = this.#root(event.by).root;
    if ('around' in event && event.around) members.around = this.#begins.get(event.around);
    if ('begin' in event && event.begin) members.begin = this.#begins.get(event.begin);
    const made = members as unknown as TraceEvent;
    if (isBegin(event)) this.#begins.set(event, made as AnyBegin);
    return made;
  }

  /** Of what Future a root is, may be learnt later. */
  #root(root: RootRef): { readonly root: Writable<RootRef>; readonly tag: bigint } {
    const future = this.#thing('future', root.future) as RootRef['future'];
    const known = madeOnce(this.#roots, root, () => {
      const tag = this.#tag(this.#numbers.owners, root.address);
      const key = this.#numbers.next('root');
      return { root: { ...this.#inSpace(root), key, future, address: addr(root.address ^ tag) }, tag };
    });
    known.root.future = future;
    return known;
  }

  /** What makes an address differ from that of the trace which had it first. */
  #tag(owners: Map<Addr, Renumber>, address: Addr): bigint {
    const isOwn = madeOnce(owners, address, () => this) === this;
    return isOwn ? 0n : BigInt(this.#trace.index + 1) << OWNER_SHIFT;
  }

  #inSpace<T extends { readonly space?: Addr | undefined }>(one: T): T {
    const { space } = one;
    return space === undefined ? one : { ...one, space: addr(space ^ this.#tag(this.#numbers.spaces, space)) };
  }

  #lock(lock: string): string {
    const isOwn = madeOnce(this.#numbers.locks, lock, () => this) === this;
    return isOwn ? lock : `${lock} of trace ${this.#trace.index + 1}`;
  }

  #lockArguments({ arguments: values }: CallBegin): CallBegin['arguments'] {
    return values.map((each) => (each.name === 'lock' ? { ...each, value: this.#lock(each.value) } : each));
  }

  /** The same thing with a number of its own, the same object each time. Its place may be learnt later. */
  #thing(kind: string, thing: Thing): Thing {
    const known = madeOnce(this.#things, thing, () => {
      const lock = thing.lock === undefined ? {} : { lock: this.#lock(thing.lock) };
      return { ...this.#inSpace(thing), ...lock, key: this.#numbers.next(kind) };
    });
    if (known.file === undefined && thing.file !== undefined) {
      known.file = thing.file;
      known.line = thing.line;
    }
    return known;
  }
}
