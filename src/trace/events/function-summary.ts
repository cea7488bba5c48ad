import { hex } from '../../base/addr.js';
import { type CallTime, Tally, TimedFold } from './call-times.js';
import type { AnyBegin, CallEnd, CallLost, FunctionRef, PollEnd, PollLost, TraceInfo } from './events.js';
import { bounded, compare, errorMembers, errorsOf, type StopError } from './summary.js';

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

class FunctionTally extends Tally {
  readonly function: FunctionRef;

  constructor(fn: FunctionRef) {
    super();
    this.function = fn;
  }

  isNamedIn(names: ReadonlySet<string>): boolean {
    return names.has(this.function.name) || names.has(this.function.instance);
  }
}

/** Counts calls per function; {@link rows} at any time. Calls still open count as calls and nothing else. */
export class FunctionSummary extends TimedFold {
  /** By the function's key. */
  readonly #tallies: FunctionTally[] = [];
  readonly #takes: (fn: FunctionRef) => boolean;
  #tickNs = 1;

  /** `takes`: of which functions it has rows. */
  constructor(takes: (fn: FunctionRef) => boolean = () => true) {
    super();
    this.#takes = takes;
  }

  override begin({ clock }: TraceInfo): void {
    this.#tickNs = clock.resolutionNs;
  }

  protected began(begin: AnyBegin): void {
    if (begin.type !== 'call-begin') return;
    const tally = this.#tally(begin.function);
    tally.calls++;
  }

  protected returned(event: PollEnd | CallEnd, spent: CallTime): void {
    if (event.type === 'call-end') this.#tally(event.function).add(event, spent);
  }

  protected override lost(event: PollLost | CallLost): void {
    if (event.type === 'call-lost') this.#tally(event.function).lost++;
  }

  /**
   * A row a function, in no particular order. `stopError`, `leftOut`, `isMixed`: see `Summary.rows`.
   */
  rows(stopError?: StopError, leftOut: ReadonlySet<string> = new Set(), isMixed = false): FunctionRow[] {
    const errorOf = errorsOf(stopError, isMixed, this.#tickNs);
    return (
      this.#tallies
        .filter((tally) => tally !== undefined && this.#takes(tally.function))
        // Nothing that has no time is an upper bound.
        .map((tally) => ({ tally, error: tally.returned === 0 ? undefined : errorOf(tally) }))
        .map(({ tally, error }) => ({
          function: tally.function.name,
          instance: tally.function.instance,
          address: hex(tally.function.address),
          file: tally.function.file ?? null,
          line: tally.function.line ?? null,
          calls: tally.calls,
          at_least: tally.isNamedIn(leftOut),
          lost: tally.lost,
          total_ns: bounded(tally.total, error),
          ...errorMembers(tally.inside, error),
          self_ns: bounded(tally.self, error),
          avg_ns: bounded(tally.returned === 0 ? 0 : Math.round(tally.sum / tally.returned), error),
          max_ns: bounded(tally.max, error),
        }))
    );
  }

  #tally(fn: FunctionRef): FunctionTally {
    this.#tallies[fn.key] ??= new FunctionTally(fn);
    return this.#tallies[fn.key] as FunctionTally;
  }
}

/** The rows for machines: sorted by function, then instance, then address, in code unit order. */
export function functionJson(rows: readonly FunctionRow[]): FunctionRow[] {
  return [...rows].sort(
    (a, b) => compare(a.function, b.function) || compare(a.instance, b.instance) || compare(a.address, b.address),
  );
}
