import type { GuestNanos } from '../../events.js';

/** Picoseconds between two begins or ends that have one time. */
const STEP = 1;
/**
 * From this time (73 minutes, in nanoseconds) a double of microseconds cannot hold picoseconds. It holds these units
 * for 26 days.
 */
const LATE = 2 ** 42;
const LATE_STEP = 250;

interface Moment {
  nanos: number;
  picos: number;
}

/**
 * Times of begins and ends of slices, as text in microseconds. On each track every time is later than the one before.
 * Picoseconds are added if the clock gives the same time, or one earlier than the last written one.
 */
export class SliceTimes {
  readonly #last = new Map<number, Moment>();

  /** Of the next begin or end on a track. */
  next(track: number, time: GuestNanos): string {
    const last = this.#last.get(track);
    if (last === undefined) {
      this.#last.set(track, { nanos: time, picos: 0 });
      return micros(time);
    }
    if (time > last.nanos) {
      last.nanos = time;
      last.picos = 0;
    } else {
      last.picos += last.nanos < LATE ? STEP : LATE_STEP;
      if (last.picos >= 1000) {
        last.nanos++;
        last.picos = 0;
      }
    }
    return momentText(last);
  }

  /** The time of something else on the track: not before its last begin or end. */
  at(track: number, time: GuestNanos): string {
    const last = this.#last.get(track);
    return last === undefined || time > last.nanos ? micros(time) : momentText(last);
  }
}

export function micros(time: number): string {
  const nanos = time % 1000;
  return `${(time - nanos) / 1000}.${String(nanos).padStart(3, '0')}`;
}

function momentText({ nanos, picos }: Moment): string {
  return picos === 0 ? micros(nanos) : `${micros(nanos)}${String(picos).padStart(3, '0')}`;
}
