import { type CallTime, Tally, TimedFold } from './call-times.js';
import type {
  AnyBegin,
  AnyEnd,
  CallEnd,
  CallLost,
  FutureKind,
  FutureRef,
  PollEnd,
  PollLost,
  PollResult,
  TraceEvent,
  TraceInfo,
} from './events.js';
import { LateResults } from './late-results.js';
import { isOfTask } from './roots.js';

/** What one Future's type did: a row of the table, as `--json` prints it. Times are guest nanoseconds. */
export interface SummaryRow {
  /** `labkern::work::level3`: without generic arguments. Rows of one generic function share it. */
  readonly future: string;
  readonly instance: string;
  readonly kind: FutureKind;
  readonly file: string | null;
  readonly line: number | null;
  /** All polls: those that were seen beginning, and the derived ones. */
  readonly polls: number;
  readonly ready: number;
  readonly pending: number;
  readonly panicked: number;
  /** How often one was dropped before it was ready, where that was seen. */
  readonly cancelled: number;
  /**
   * `cancelled` is a lower bound, because not every drop of this Future leaves a mark. One written by hand shows only
   * as a task that it was not ready.
   */
  readonly cancelled_at_least: boolean;
  /** Those of `polls` that had no breakpoint of their own: they count as polls, ready and pending, but have no time. */
  readonly derived: number;
  /** Those of `polls` whose end was not seen; they have no time. */
  readonly lost: number;
  /** Those of `polls` that were inlined and of which memory does not say the result. */
  readonly unknown: number;
  /**
   * `polls`, `ready` and `pending` are lower bounds, because not every inlined poll of this Future leaves a mark, or
   * because a probe was left out.
   */
  readonly at_least: boolean;
  /** A probe of it was left out, or switched off on the way. */
  readonly probe_left_out: boolean;
  /**
   * Time inside this Future's polls, including everything that they call. If polls of the same instance nest on one
   * hart, only the outermost counts, as in `uftrace report`. So it never exceeds the time that passed.
   */
  readonly total_ns: number;
  /** How wrong `total_ns` may be, where stops were taken out of it up to a tick of the clock each. */
  readonly total_error_ns?: number;
  /** The times are upper bounds, because stops have added to them what nothing says. */
  readonly times_at_most?: true;
  /** The longest single poll. */
  readonly max_ns: number;
}

class FutureTally extends Tally implements Record<PollResult, number> {
  readonly future: FutureRef;
  ready = 0;
  pending = 0;
  panicked = 0;
  unknown = 0;
  cancelled = 0;
  derived = 0;
  /** Some of its polls were not those of a task itself. */
  isHeld = false;

  constructor(future: FutureRef) {
    super();
    this.future = future;
  }
}

/** Counts polls per Future; {@link rows} at any time. Polls still open count as polls and nothing else. */
export class Summary extends TimedFold {
  /** By the Future's key. */
  readonly #tallies: FutureTally[] = [];
  readonly #late = new LateResults((future) => {
    const tally = this.#tally(future);
    tally.pending++;
    tally.unknown--;
  });

  #tickNs = 1;

  override begin({ clock }: TraceInfo): void {
    this.#tickNs = clock.resolutionNs;
  }

  protected began(begin: AnyBegin): void {
    if (begin.type !== 'poll-begin') return;
    this.#late.began(begin);
    const tally = this.#tally(begin.future);
    tally.calls++;
    tally.isHeld ||= begin.root.future !== begin.future || begin.root.address !== begin.address;
  }

  protected returned(event: PollEnd | CallEnd, spent: CallTime): void {
    if (event.type !== 'poll-end') return;
    const tally = this.#tally(event.future);
    tally.add(event, spent);
    tally[event.result]++;
    this.#late.ended(event);
  }

  protected override lost(event: PollLost | CallLost): void {
    if (event.type === 'poll-lost') this.#tally(event.future).lost++;
  }

  protected override other(event: Exclude<TraceEvent, AnyBegin | AnyEnd>): void {
    if (event.type === 'gap' || event.type === 'reset') this.#late.clear();
    else if (event.type === 'derived-poll') {
      const tally = this.#tally(event.future);
      tally.calls++;
      tally.derived++;
      tally.isHeld = true;
      tally[event.result]++;
    } else if (event.type === 'cancelled') {
      // A task around the Futures that were asked for has no row.
      if (!isOfTask(event) || this.#tallies[event.future.key]) this.#tally(event.future).cancelled++;
    }
  }

  /**
   * A row a Future, in no particular order. `error`: what stops have left in the times. `leftOut`: the Futures of which
   * a probe was left out. `isMixed`: some probes have stopped the target.
   */
  rows(stopError?: StopError, leftOut: ReadonlySet<string> = new Set(), isMixed = false): SummaryRow[] {
    const errorOf = errorsOf(stopError, isMixed, this.#tickNs);
    return this.#tallies
      .filter((tally) => tally !== undefined)
      .map((tally) => ({ ...tally, error: errorOf(tally) }))
      .map(({ future, total, inside, max, error, ...counts }) => ({
        future: future.future,
        instance: future.instance,
        kind: future.kind,
        file: future.file ?? null,
        line: future.line ?? null,
        polls: counts.calls,
        ready: counts.ready,
        pending: counts.pending,
        panicked: counts.panicked,
        cancelled: counts.cancelled,
        cancelled_at_least: future.hidesDrops === true || hidesHeld(future, counts) || leftOut.has(future.future),
        derived: counts.derived,
        lost: counts.lost,
        unknown: counts.unknown,
        at_least: counts.derived > 0 || future.inlined === true || leftOut.has(future.future),
        probe_left_out: leftOut.has(future.future),
        total_ns: bounded(total, error),
        ...errorMembers(inside, error),
        max_ns: bounded(max, error),
      }));
  }

  #tally(future: FutureRef): FutureTally {
    this.#tallies[future.key] ??= new FutureTally(future);
    return this.#tallies[future.key] as FutureTally;
  }
}

/** Written by hand, it does not show that it was not ready: what holds it may have dropped one that was pending. */
function hidesHeld(
  { kind }: FutureRef,
  { calls, ready, panicked, isHeld }: Pick<FutureTally, 'calls' | 'ready' | 'panicked' | 'isHeld'>,
): boolean {
  return kind === 'impl' && isHeld && calls > ready + panicked;
}

/** What stops leave in durations: the error of a tick each, or nobody knows how much. */
export interface StopError {
  readonly tickNs: number;
  readonly isUnknown: boolean;
}

/** Of each tally. Where some probes have stopped the target, and others not, nothing says how much a stop has added. */
export function errorsOf(
  stopError: StopError | undefined,
  isMixed: boolean,
  tickNs: number,
): (tally: Tally) => StopError | undefined {
  return ({ stopped }) => stopError ?? (isMixed && stopped > 0 ? { tickNs, isUnknown: true } : undefined);
}

/**
 * Of a total in which so many events were stops: three standard deviations, which is 1.25 ticks by the root of the
 * number. A stop's leak ends anywhere within a tick, so the difference of two times is wrong by its own 0.41 ticks.
 * One difference is wrong by a tick at most.
 */
export function errorOf(stops: number, tickNs: number): number {
  return Math.round(tickNs * Math.min(stops, 1.25 * Math.sqrt(stops)));
}

/** Members of a row in whose total so many events were stops. */
export function errorMembers(
  stops: number,
  error: StopError | undefined,
): Partial<Pick<SummaryRow, 'total_error_ns' | 'times_at_most'>> {
  if (error === undefined) return {};
  return error.isUnknown ? { times_at_most: true } : { total_error_ns: errorOf(stops, error.tickNs) };
}

/** A time as it is shown: an upper bound is a tick of the clock at least. */
export function bounded(nanos: number, error: StopError | undefined): number {
  return error?.isUnknown ? Math.max(nanos, Math.ceil(error.tickNs)) : nanos;
}

/** The rows for machines: sorted by future, then instance, in code unit order, whatever the locale. */
export function summaryJson(rows: readonly SummaryRow[]): SummaryRow[] {
  return [...rows].sort((a, b) => compare(a.future, b.future) || compare(a.instance, b.instance));
}

/** Orders text by code units. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
