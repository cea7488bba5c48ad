import { hex } from '../../base/addr.js';
import { type CallTime, Tally, TimedFold } from './call-times.js';
import type { AnyBegin, CallEnd, CallLost, FunctionRef, PollEnd, PollLost, TraceInfo } from './events.js';
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

class FunctionTally extends Tally {
  readonly function: FunctionRef;
  /** Around calls of it. */
  readonly callers = new Set<FunctionTally>();

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
    let { around } = begin;
    while (around && around.type !== 'call-begin') around = around.around;
    if (around) tally.callers.add(this.#tally(around.function));
  }

  protected returned(event: PollEnd | CallEnd, spent: CallTime): void {
    if (event.type === 'call-end') this.#tally(event.function).add(event, spent);
  }

  protected override lost(event: PollLost | CallLost): void {
    if (event.type === 'call-lost') this.#tally(event.function).lost++;
  }

  /**
   * A row a function, in no particular order. `stopError`, `leftOut`: see `Summary.rows`. `stopping`: of these each call
   * has stopped the target, and of others not, so that stops are in their times and in those of their callers.
   */
  rows(
    stopError?: StopError,
    leftOut: ReadonlySet<string> = new Set(),
    stopping: ReadonlySet<string> = new Set(),
  ): FunctionRow[] {
    const stopped = this.#around(stopping);
    // Where some calls have stopped the target, and others not, nothing says how long.
    const unknown: StopError = { tickNs: this.#tickNs, isUnknown: true };
    const errorOf = (tally: FunctionTally): StopError | undefined =>
      stopError ?? (stopped.has(tally) ? unknown : undefined);
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

  /** Those with these names, and all that has called them. */
  #around(names: ReadonlySet<string>): ReadonlySet<FunctionTally> {
    const found = new Set(this.#tallies.filter((tally) => tally?.isNamedIn(names)));
    // What is added meanwhile is visited too.
    for (const { callers } of found) for (const caller of callers) found.add(caller);
    return found;
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
