import { type AnyBegin, type AnyEnd, type TraceEvent, type TraceSink, timeOf } from './events.js';
import { isBegin, isEnd } from './open-calls.js';
import { Filter } from './sinks.js';

/** A time of the trace in nanoseconds, or the first time that something of a name begins. */
export type Landmark = number | ((name: string) => boolean);

/**
 * Passes on what happens between two moments. A call counts if it begins there, then with all of its time. The moment
 * of an entry belongs to a window that begins with it, and not to one that ends with it.
 */
export class Window extends Filter {
  readonly #from: Landmark | undefined;
  readonly #to: Landmark | undefined;
  #state: 'before' | 'inside' | 'after';
  #isEmpty = true;
  #opened: number;
  #closed = Number.POSITIVE_INFINITY;
  /** What has begun inside. */
  readonly #begun = new WeakSet<AnyBegin>();

  constructor(sink: TraceSink, from: Landmark | undefined, to: Landmark | undefined) {
    super(sink);
    this.#from = from;
    this.#to = to;
    this.#state = from === undefined ? 'inside' : 'before';
    this.#opened = from === undefined ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }

  /** Whether the window has begun: a name may never have come. */
  get hasBegun(): boolean {
    return this.#state !== 'before';
  }

  /** Whether it has ended: so may a name. */
  get hasEnded(): boolean {
    return this.#state === 'after';
  }

  /** Whether nothing of it was passed on. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  event(event: TraceEvent): void {
    const isFirst = this.#state === 'before' && reached(event, this.#from);
    if (isFirst) {
      this.#state = 'inside';
      this.#opened = timeAt(this.#from, event);
    }
    // The entry that it begins with does not end it, but a time may be over already.
    const ends = !isFirst || typeof this.#to === 'number';
    const before = this.#state;
    if (before === 'inside' && ends && reached(event, this.#to)) {
      this.#state = 'after';
      this.#closed = timeAt(this.#to, event);
    }
    const isInside = this.#state === 'inside' || (before === 'inside' && beginsBefore(event, this.#to));
    if (isInside && isBegin(event)) this.#begun.add(event);
    if (!(isEnd(event) ? this.#hasBegun(event) : isInside)) return;
    this.#isEmpty = false;
    this.sink.event(event);
  }

  /** Whether what ends has begun inside. Of a begin that was not seen, or is no more known, the end has the time. */
  #hasBegun({ begin, began }: AnyEnd): boolean {
    return begin ? this.#begun.has(begin) : began >= this.#opened && began < this.#closed;
  }
}

/** When a landmark was that an event has reached. */
function timeAt(landmark: Landmark | undefined, event: TraceEvent): number {
  return typeof landmark === 'number' ? landmark : timeOf(event);
}

/** A gap that ends behind a window may begin in it. */
function beginsBefore(event: TraceEvent, landmark: Landmark | undefined): boolean {
  return event.type === 'gap' && typeof landmark === 'number' && event.from < landmark;
}

function reached(event: TraceEvent, landmark: Landmark | undefined): boolean {
  return landmark !== undefined && landmarkReached(event, landmark);
}

/** Whether a landmark has come with an event. */
export function landmarkReached(event: TraceEvent, landmark: Landmark): boolean {
  if (typeof landmark === 'number') return timeOf(event) >= landmark;
  if (event.type === 'call-begin') return landmark(event.function.name);
  if (event.type === 'place') return landmark(event.place.name);
  return event.type === 'poll-begin' && landmark(event.future.future);
}
