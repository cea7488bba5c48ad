import { firstWhere } from '../base/search.js';

/** So many stops are kept, and so many more before the oldest of them go. */
const mostKept = 4096;

/** When breakpoints have stopped the target, in guest nanoseconds. */
export class StopTimes {
  /** The first of them, each followed by the time of the next event. */
  readonly first: number[] = [];
  readonly #most: number;
  #last: number[] = [];
  /** Older ones are not kept. */
  #areGone = false;
  /** The last stop, if no event has come since. */
  #stood = Number.POSITIVE_INFINITY;

  /** `most`: so many are named. */
  constructor(most: number) {
    this.#most = most;
  }

  stood(time: number): void {
    this.#last.push(time);
    if (this.#last.length > 2 * mostKept) {
      this.#last = this.#last.slice(-mostKept);
      this.#areGone = true;
    }
    if (this.first.length >= this.#most) return;
    this.first.push(time);
    this.#stood = Math.min(this.#stood, time);
  }

  event(time: number): void {
    if (time < this.#stood) return;
    if (time > this.#stood) this.first.push(time);
    this.#stood = Number.POSITIVE_INFINITY;
  }

  /** Whether one was in this time, its ends included. True where those of that time are not kept: it is a bound then. */
  areIn(from: number, to: number): boolean {
    const last = this.#last;
    const after = firstWhere(last.length, (i) => (last[i] as number) > to);
    const before = last[after - 1];
    return before === undefined ? this.#areGone : before >= from;
  }
}
