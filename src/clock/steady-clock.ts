import type { Batch } from '../rsp/index.js';
import type { ClockReader } from './clock.js';

/**
 * A clock whose time continues when a reset of the machine sets the clock back. What stops have added to it can be
 * taken out.
 */
export class SteadyClock implements ClockReader {
  readonly #clock: ClockReader;
  /** Nanoseconds by which the trace's time is ahead of the clock's. */
  ahead = 0;
  /** Nanoseconds of the clock that the trace's time is without; part of {@link ahead}. */
  takenOut = 0;

  constructor(clock: ClockReader) {
    this.#clock = clock;
  }

  get info(): ClockReader['info'] {
    return this.#clock.info;
  }

  request(batch: Batch): () => number {
    const time = this.#clock.request(batch);
    return () => time() + this.ahead;
  }

  /**
   * The machine was reset. `time`: this clock's value; `last`: the time of the last event. If the clock was not set
   * back, the trace's time follows it unchanged.
   */
  goOnFrom(last: number, time: number): void {
    this.ahead += Math.max(0, last - time);
  }

  /** A stop has added so many nanoseconds to the clock. */
  takeOut(nanos: number): void {
    this.ahead -= nanos;
    this.takenOut += nanos;
  }

  /** The trace's time is that of the clock again. */
  catchUp(): void {
    this.ahead += this.takenOut;
    this.takenOut = 0;
  }
}
