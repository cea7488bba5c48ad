import type { CallBegin, CallEnd, CallLost, TraceEvent, TraceFacts, TraceSink } from './events.js';
import { type OpenCall, OpenCalls } from './open-calls.js';
import { Filter } from './sinks.js';

/** A call that has begun. Either it is not yet known whether it lasts long enough, or it does and was passed on. */
interface Held {
  readonly type: 'held';
  readonly begin: CallBegin;
  state: 'held' | 'passed' | 'dropped';
  /** How long it lasts nobody will know: its return is not observed. */
  isTimeless?: boolean;
}

/** The most events that wait behind a held call. Short calls leave at their end, so only polls can fill this. */
const mostWaiting = 1 << 16;

/**
 * Drops calls of functions that last less than a threshold, as `uftrace -t` does. Their own calls are shorter still
 * and are dropped too. Polls, states and uses of locks stay. So do calls that were still open when the last event came
 * before the end or a reset, because one that hangs has none behind it. Order is kept: while a call is too young to
 * decide on, the events after its begin wait, for at most the threshold.
 */
export class Threshold extends Filter {
  readonly #nanos: number;
  readonly #open = new OpenCalls<OpenCall & { readonly held?: Held }>();
  #waiting: (TraceEvent | Held)[] = [];
  /** Young calls that were lost at the time of the last event, and the events that say so. */
  #lost: (TraceEvent | Held)[] = [];

  constructor(sink: TraceSink, nanos: number) {
    super(sink);
    this.#nanos = nanos;
  }

  event(event: TraceEvent): void {
    const time = event.type === 'gap' ? event.from : event.time;
    const isEnd = event.type === 'gap' || event.type === 'reset';
    if (this.#lost.length > 0) this.#forgetLost(isEnd ? undefined : time);
    this.#release(time);
    // Each use of a lock says who holds it from then on.
    if ('function' in event && event.function.kind === 'lock') {
      this.#pass(event);
      return;
    }
    switch (event.type) {
      case 'call-begin': {
        const held: Held = { type: 'held', begin: event, state: 'held' };
        this.#open.begin({ begin: event, held });
        this.#waiting.push(held);
        break;
      }
      case 'call-end':
      case 'call-lost':
        this.#callEnd(event);
        break;
      default:
        this.#pass(event);
    }
    if (this.#waiting.length > mostWaiting) this.#release(Number.POSITIVE_INFINITY);
  }

  override end(facts?: TraceFacts): void {
    this.#release(Number.POSITIVE_INFINITY);
    this.sink.end(facts);
  }

  #callEnd(event: CallEnd | CallLost): void {
    const held = this.#open.end(event)?.held;
    if (held === undefined) {
      if (event.time - event.began >= this.#nanos) this.#pass(event);
    } else if (held.state === 'passed') {
      this.#pass(event);
    } else if (event.type === 'call-lost') {
      held.isTimeless = event.entryOnly;
      if (!event.entryOnly) this.#lost.push(held, event);
      this.#waiting.push(event);
    } else {
      held.state = 'dropped';
      this.#waiting.splice(this.#waiting.lastIndexOf(held), 1);
    }
  }

  /** An event after them proves that they were short; a gap or a reset does not. */
  #forgetLost(time: number | undefined): void {
    const [, last] = this.#lost;
    if (time !== undefined && last !== undefined && 'time' in last && last.time === time) return;
    const short = new Set(time === undefined ? [] : this.#lost);
    this.#waiting = this.#waiting.filter((item) => !short.has(item));
    this.#lost = [];
  }

  #pass(event: TraceEvent): void {
    if (this.#waiting.length === 0) this.sink.event(event);
    else this.#waiting.push(event);
  }

  /**
   * Passes on the events that need not wait any longer at this time: up to the first call that is younger than the
   * threshold.
   */
  #release(time: number): void {
    const waits = this.#waiting.findIndex(
      (item) => item.type === 'held' && !item.isTimeless && time - item.begin.time < this.#nanos,
    );
    const ripe = this.#waiting.splice(0, waits < 0 ? this.#waiting.length : waits);
    for (const item of ripe) {
      if (item.type === 'held') item.state = 'passed';
      this.sink.event(item.type === 'held' ? item.begin : item);
    }
  }
}
