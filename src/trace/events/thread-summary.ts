import { hex } from '../../base/addr.js';
import { type CallBegin, type ThreadRef, type TraceEvent, timeOf } from './events.js';
import { Fold } from './sinks.js';
import { bounded, compare, errorMembers, type StopError } from './summary.js';

/** What one thread did: a row of the table, as `--json` prints it. Times are guest nanoseconds. */
export interface ThreadRow {
  readonly thread: string;
  /** Where its context is saved. */
  readonly context: string;
  /** How often it was given a hart. */
  readonly switches: number;
  /** Those of `switches` whose end was not seen; they have no time. */
  readonly lost: number;
  /** The harts that it had, by their numbers. */
  readonly harts: readonly number[];
  /** Time that it had a hart, up to the end of the recording. */
  readonly on_cpu_ns: number;
  /** Of both totals, see `SummaryRow`. */
  readonly total_error_ns?: number;
  readonly times_at_most?: true;
  readonly longest_on_cpu_ns: number;
  /** Time that it had none, between the first time that it was given one and the last. */
  readonly off_cpu_ns: number;
  readonly longest_off_cpu_ns: number;
}

interface Tally {
  readonly thread: ThreadRef;
  switches: number;
  lost: number;
  readonly harts: Set<number>;
  on: number;
  longestOn: number;
  off: number;
  longestOff: number;
  /** When it left its hart; undefined if it has one, or that was not seen. */
  left: number | undefined;
  open: CallBegin | undefined;
}

/** Follows each thread that context switches show. */
export class ThreadSummary extends Fold {
  readonly #tallies = new Map<ThreadRef, Tally>();
  #now = 0;

  event(event: TraceEvent): void {
    this.#now = timeOf(event);
    if (event.type === 'call-begin') {
      const tally = event.thread?.name === undefined ? undefined : this.#tally(event.thread);
      if (tally) begins(tally, event);
    } else if (event.type === 'call-end' || event.type === 'call-lost') {
      const tally = event.thread && this.#tallies.get(event.thread);
      if (tally?.open && tally.open === event.begin) ends(tally, event.time, event.type === 'call-lost');
    } else if (event.type === 'gap' || event.type === 'reset') {
      // It may have had a hart meanwhile.
      for (const tally of this.#tallies.values()) tally.left = undefined;
    }
  }

  /** Those that had a hart for the longest time first. */
  rows(stopError?: StopError): ThreadRow[] {
    const rows = [...this.#tallies.values()].map((tally): ThreadRow => {
      const { thread, switches, lost, harts, off, longestOff, open } = tally;
      const still = open === undefined ? 0 : this.#now - open.time;
      return {
        thread: thread.name ?? '',
        context: hex(thread.stack),
        switches,
        lost,
        harts: [...harts].sort((a, b) => a - b),
        on_cpu_ns: bounded(tally.on + still, stopError),
        ...errorMembers(2 * switches, stopError),
        longest_on_cpu_ns: bounded(Math.max(tally.longestOn, still), stopError),
        off_cpu_ns: bounded(off, stopError),
        longest_off_cpu_ns: bounded(longestOff, stopError),
      };
    });
    return rows.sort((a, b) => b.on_cpu_ns - a.on_cpu_ns || compare(a.thread, b.thread));
  }

  #tally(thread: ThreadRef): Tally {
    let tally = this.#tallies.get(thread);
    if (!tally) {
      const times = { on: 0, longestOn: 0, off: 0, longestOff: 0, left: undefined, open: undefined };
      tally = { thread, switches: 0, lost: 0, harts: new Set(), ...times };
      this.#tallies.set(thread, tally);
    }
    return tally;
  }
}

function begins(tally: Tally, begin: CallBegin): void {
  tally.switches++;
  tally.harts.add(begin.hart);
  if (tally.left !== undefined) {
    const off = begin.time - tally.left;
    tally.off += off;
    tally.longestOff = Math.max(tally.longestOff, off);
  }
  tally.left = undefined;
  tally.open = begin;
}

function ends(tally: Tally, time: number, isLost: boolean): void {
  const on = time - (tally.open?.time ?? time);
  tally.open = undefined;
  if (isLost) {
    tally.lost++;
    return;
  }
  tally.left = time;
  tally.on += on;
  tally.longestOn = Math.max(tally.longestOn, on);
}
