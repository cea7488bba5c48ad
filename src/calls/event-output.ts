import type { GuestNanos, TraceEvent, TraceSink } from '../trace/index.js';

/** Takes the events: keeps the guest's time from running backwards, and counts. */
export class EventOutput {
  readonly #sink: TraceSink;
  #time = 0;
  #events = 0;

  constructor(sink: TraceSink) {
    this.#sink = sink;
  }

  /** The time of the hit whose events are emitted. */
  get time(): GuestNanos {
    return this.#time as GuestNanos;
  }

  /** Events given to the sink so far. */
  get events(): number {
    return this.#events;
  }

  /** A guest that sets its clock back must not turn durations negative. */
  at(time: number): GuestNanos {
    return Math.max(this.#time, time) as GuestNanos;
  }

  moveTo(time: number): void {
    this.#time = this.at(time);
  }

  emit(event: TraceEvent): void {
    this.#events++;
    this.#sink.event(event);
  }
}
