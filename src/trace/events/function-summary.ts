import { CallTimes } from './call-times.js';
import type { CallEnd, FunctionRef, TraceEvent } from './events.js';
import { Fold } from './sinks.js';
import { bounded, compare, errorMembers, type StopError } from './summary.js';

/** What one function did: a row of the table, as `--json` prints it. Times are guest nanoseconds. */
export interface FunctionRow {
  /** `labkern::work::deep0`: without generic arguments. Rows of one generic function share it. */
  readonly function: string;
  readonly instance: string;
  /** `0x80200000`. */
  readonly address: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly calls: number;
  /** `calls` is a lower bound, because the probe was switched off on the way. */
  readonly at_least: boolean;
  /** Those of `calls` whose return was not seen; they have no time. */
  readonly lost: number;
  /** Time inside it, including everything that it calls. If calls nest, only the outermost counts, as in uftrace. */
  readonly total_ns: number;
  /** See `SummaryRow`. */
  readonly total_error_ns?: number;
  readonly times_at_most?: true;
  /** Time inside it, without the traced calls and polls that ran meanwhile on the same hart, or in the same thread. */
  readonly self_ns: number;
  /** Mean time of the calls that returned, recursive ones included. */
  readonly avg_ns: number;
  readonly max_ns: number;
}

interface Tally {
  readonly function: FunctionRef;
  calls: number;
  lost: number;
  returned: number;
  total: number;
  /** Events in that time, see `CallTime`. */
  inside: number;
  self: number;
  sum: number;
  max: number;
}

/** Counts calls per function; {@link rows} at any time. Calls still open count as calls and nothing else. */
export class FunctionSummary extends Fold {
  /** By the function's key. */
  readonly #tallies: Tally[] = [];
  readonly #times = new CallTimes();

  event(event: TraceEvent): void {
    switch (event.type) {
      case 'call-begin':
        this.#tally(event.function).calls++;
        this.#times.begin(event);
        break;
      case 'poll-begin':
        this.#times.begin(event);
        break;
      case 'poll-end':
        this.#times.returned(event);
        break;
      case 'poll-lost':
        this.#times.lost(event);
        break;
      case 'call-end':
        this.#returned(event);
        break;
      case 'call-lost':
        if (this.#times.lost(event)) this.#tally(event.function).lost++;
        break;
      case 'state':
      case 'derived-poll':
      case 'watch':
      case 'place':
      case 'wake':
      case 'cancelled':
      case 'stuck':
      case 'reset':
        break;
    }
  }

  /** A row a function, in no particular order. `error`, `leftOut`: see `Summary.rows`. */
  rows(error?: StopError, leftOut: ReadonlySet<string> = new Set()): FunctionRow[] {
    return this.#tallies
      .filter((tally) => tally !== undefined)
      .map((tally) => ({
        function: tally.function.name,
        instance: tally.function.instance,
        address: `0x${tally.function.address.toString(16)}`,
        file: tally.function.file ?? null,
        line: tally.function.line ?? null,
        calls: tally.calls,
        at_least: leftOut.has(tally.function.name) || leftOut.has(tally.function.instance),
        lost: tally.lost,
        total_ns: bounded(tally.total, error),
        ...errorMembers(tally.inside, error),
        self_ns: bounded(tally.self, error),
        avg_ns: bounded(tally.returned === 0 ? 0 : Math.round(tally.sum / tally.returned), error),
        max_ns: bounded(tally.max, error),
      }));
  }

  #returned(event: CallEnd): void {
    const spent = this.#times.returned(event);
    // A return without an entry is no call.
    if (!spent) return;
    const tally = this.#tally(event.function);
    if (event.wasLost) tally.lost--;
    tally.returned++;
    tally.sum += spent.time;
    tally.self += spent.self;
    tally.total += spent.total;
    tally.inside += spent.events;
    tally.max = Math.max(tally.max, spent.time);
  }

  #tally(fn: FunctionRef): Tally {
    let tally = this.#tallies[fn.key];
    if (tally === undefined) {
      tally = { function: fn, calls: 0, lost: 0, returned: 0, total: 0, inside: 0, self: 0, sum: 0, max: 0 };
      this.#tallies[fn.key] = tally;
    }
    return tally;
  }
}

/** The rows for machines: sorted by function, then instance, then address, in code unit order. */
export function functionJson(rows: readonly FunctionRow[]): FunctionRow[] {
  return [...rows].sort(
    (a, b) => compare(a.function, b.function) || compare(a.instance, b.instance) || compare(a.address, b.address),
  );
}
