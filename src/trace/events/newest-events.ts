import {
  type AnyBegin,
  type AnyEnd,
  type Cancelled,
  type HartInfo,
  type PollEnd,
  type RootRef,
  type TraceEvent,
  type TraceFacts,
  type TraceInfo,
  type TraceSink,
  timeOf,
} from './events.js';
import { isBegin, isEnd } from './open-calls.js';
import { NewestRoots } from './roots.js';
import { Filter } from './sinks.js';

/** How much a {@link NewestEvents} keeps. */
export interface Newest {
  /** Only events of so many last nanoseconds; undefined for no limit but memory. */
  readonly nanos: number | undefined;
  /** Of memory, about. */
  readonly bytes: number;
}

/** The last poll of a task that waits: what it waits for is in its end. */
interface Waiting {
  readonly root: RootRef;
  readonly begin: AnyBegin;
  readonly end: PollEnd;
}

/**
 * A flight recorder: keeps the newest events in memory, and gives them to another sink when the recording ends. What
 * began earlier and is open in that time is kept, with its own time. So is the last poll of each task that waits.
 */
export class NewestEvents extends Filter {
  readonly #newest: Newest;
  #info: TraceInfo | undefined;
  readonly #harts: HartInfo[] = [];
  readonly #events = new EventQueue();
  /** Begins that are older and still open, the oldest first. */
  readonly #open = new Set<AnyBegin>();
  /** By the places of tasks: what lies where another task lay has its memory. */
  readonly #waiting = new NewestRoots<Waiting>();
  #leftOut = 0;
  #cutByMemory = false;

  constructor(sink: TraceSink, newest: Newest) {
    super(sink);
    this.#newest = newest;
  }

  /** Events that were left out. */
  get leftOut(): number {
    return this.#leftOut;
  }

  /** Memory was the limit: fewer events were kept than the time asked for. */
  get isCutByMemory(): boolean {
    return this.#cutByMemory && this.#newest.nanos !== undefined;
  }

  override begin(info: TraceInfo): void {
    this.#info = info;
  }

  override hart(hart: HartInfo): void {
    this.#harts.push(hart);
  }

  /** Nothing is written before the end. */
  override flush(): void {}

  event(event: TraceEvent): void {
    this.#events.push(event);
    const { nanos = Number.POSITIVE_INFINITY, bytes } = this.#newest;
    const since = timeOf(event) - nanos;
    for (let { oldest } = this.#events; oldest; { oldest } = this.#events) {
      const isFull = this.#events.bytes > bytes;
      if (!isFull && timeOf(oldest) >= since) break;
      if (isFull) this.#cutByMemory = true;
      this.#events.shift();
      this.#leaveOut(oldest);
    }
  }

  /** Writes what is kept, and ends the sink. */
  override end(facts?: TraceFacts): void {
    if (this.#info) {
      this.sink.begin(this.#info);
      for (const hart of this.#harts) this.sink.hart(hart);
      for (const event of this.#earlier()) this.sink.event(event);
      for (const event of this.#newer()) this.sink.event(event);
    }
    this.#info = undefined;
    this.#events.clear();
    const recording = facts?.recording;
    this.sink.end(recording ? { ...facts, recording: { ...recording, leftOut: this.#leftOut } } : facts);
  }

  #leaveOut(event: TraceEvent): void {
    // What the guest prints is not counted as an event anywhere else either.
    if (event.type !== 'console') this.#leftOut++;
    if (isBegin(event)) this.#open.add(event);
    else if (isEnd(event)) this.#ended(event);
    else if (event.type === 'cancelled' && event.root && isOfRoot(event)) this.#waiting.delete(event.root);
    else if (event.type === 'reset') this.#waiting.clear();
  }

  #ended(event: AnyEnd): void {
    const { begin } = event;
    if (begin) this.#open.delete(begin);
    if (event.type === 'poll-lost') this.#waiting.delete(event.root);
    if (event.type !== 'poll-end' || !isOfRoot(event)) return;
    if (begin && event.result === 'pending') this.#waiting.set({ root: event.root, begin, end: event });
    else this.#waiting.delete(event.root);
  }

  /** What is older and kept all the same, in the order of time. */
  #earlier(): TraceEvent[] {
    const earlier: TraceEvent[] = [...this.#open];
    const polled = new Set<RootRef>();
    for (const event of this.#events) {
      if (event.type === 'poll-begin' || event.type === 'poll-end') polled.add(event.root);
    }
    for (const { root, begin, end } of this.#waiting.values()) if (!polled.has(root)) earlier.push(begin, end);
    this.#leftOut -= earlier.length;
    return earlier.sort((a, b) => timeOf(a) - timeOf(b));
  }

  /** Where it was left out that a call was emitted as lost too early, its end is that of any call. */
  *#newer(): Generator<TraceEvent> {
    const lost = new Set<AnyBegin>();
    for (const event of this.#events) {
      if (!isEnd(event)) yield event;
      else if (event.type === 'poll-lost' || event.type === 'call-lost') {
        if (event.begin) lost.add(event.begin);
        yield event;
      } else yield event.wasLost && !(event.begin && lost.has(event.begin)) ? { ...event, wasLost: undefined } : event;
    }
  }
}

/** Whether it is of what the executor polls, and not of what that holds. */
function isOfRoot({ root, future, address }: Pick<Cancelled, 'root' | 'future' | 'address'>): boolean {
  return root?.address === address && root.future === future;
}

/** Events, the oldest first, and about how much memory they take. */
class EventQueue {
  /** From `#first` on. */
  #events: TraceEvent[] = [];
  #first = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get oldest(): TraceEvent | undefined {
    return this.#events[this.#first];
  }

  push(event: TraceEvent): void {
    this.#events.push(event);
    this.#bytes += bytesOf(event);
  }

  /** Takes the oldest out. */
  shift(): void {
    const event = this.#events[this.#first];
    if (!event) return;
    this.#bytes -= bytesOf(event);
    this.#first++;
    if (this.#first > 1024 && this.#first > this.#events.length / 2) {
      this.#events = this.#events.slice(this.#first);
      this.#first = 0;
    }
  }

  clear(): void {
    this.#events = [];
    this.#first = 0;
    this.#bytes = 0;
  }

  *[Symbol.iterator](): Generator<TraceEvent> {
    for (let i = this.#first; i < this.#events.length; i++) yield this.#events[i] as TraceEvent;
  }
}

/** What an event takes in memory, about: measured with V8's heap statistics. */
const EVENT_BYTES = 250;
const VALUE_BYTES = 90;

function bytesOf(event: TraceEvent): number {
  switch (event.type) {
    case 'call-begin':
      return EVENT_BYTES + VALUE_BYTES * event.arguments.length;
    case 'call-end':
      return EVENT_BYTES + (event.result === undefined ? 0 : VALUE_BYTES);
    case 'poll-begin':
      return EVENT_BYTES + VALUE_BYTES * (event.stack?.length ?? 0);
    case 'poll-end':
      return EVENT_BYTES + VALUE_BYTES * event.chain.length;
    case 'watch':
      return EVENT_BYTES + VALUE_BYTES * (2 + event.inlined.length);
    default:
      return EVENT_BYTES;
  }
}
