import type { GuestNanos } from '../../events/events.js';
import type { TextBytes } from '../output/text-bytes.js';

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

  /** Writes that of the next begin or end on a track. */
  putNext(track: number, time: GuestNanos, into: TextBytes): void {
    const last = this.#last.get(track);
    if (last === undefined) {
      this.#last.set(track, { nanos: time, picos: 0 });
      into.micros(time);
      return;
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
    putMoment(last, into);
  }

  /** Writes the time of something else on the track: not before its last begin or end. */
  put(track: number, time: GuestNanos, into: TextBytes): void {
    const last = this.#last.get(track);
    if (last === undefined || time > last.nanos) into.micros(time);
    else putMoment(last, into);
  }
}

function putMoment({ nanos, picos }: Moment, into: TextBytes): void {
  into.micros(nanos);
  if (picos !== 0) into.padded(picos, 3);
}
