import { madeOnce } from '../../base/made-once.js';
import { namesBound } from '../events/bounds.js';
import { Durations } from '../events/durations.js';
import type { TraceEvent, TraceFacts, TraceInfo, TraceSink } from '../events/events.js';
import type { Process } from '../events/processes.js';
import { Filter } from '../events/sinks.js';

/** One row, while events come. Times are nanoseconds of the trace's clock. */
export interface Row {
  readonly name: string;
  /** With generic arguments; undefined where there is no such name. */
  readonly instance: string | undefined;
  readonly address: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** Of an await: what of a library is awaited there. */
  readonly inside?: string | undefined;
  readonly process?: Pick<Process, 'number' | 'first' | 'last'> | undefined;
  /** The function or Future whose calls it counts, as probes name it; undefined if it counts those of any. */
  readonly subject?: string | undefined;
  /** Calls, polls, waits, or lives. */
  calls: number;
  /** Those whose end was not seen; they have no time. */
  lost: number;
  /** Those with a stop in them. */
  stopped: number;
  /** Time inside, recursion counted once. */
  total: number;
  /** Without the traced calls and polls inside; of lives the time in their polls. */
  self: number;
  /** Of lives: the rest of the total. */
  waiting?: number | undefined;
  /** Not every poll of it is seen, because the compiler inlined some. */
  isInlined: boolean;
  readonly durations: Durations;
}

/** The same at the end, with what its numbers are worth. */
export interface ReportRow extends Readonly<Omit<Row, 'isInlined' | 'stopped' | 'subject'>> {
  /**
   * Why `calls` is a lower bound: a probe was left out, or switched off on the way, or the compiler inlined polls.
   * Undefined if it is none.
   */
  readonly bound: 'left-out' | 'inlined' | undefined;
  /** Times are upper bounds, and this is the least that one may be: a tick of the clock. Undefined if they are not. */
  readonly timesAtMost: number | undefined;
  /** What a time of 0 is less than: a tick of the clock, and what of an event durations leave out. */
  readonly zeroAtMost: number;
}

export type About = Pick<Row, 'name'> &
  Partial<Pick<Row, 'instance' | 'address' | 'file' | 'line' | 'inside' | 'waiting' | 'isInlined' | 'subject'>>;
export type Key = object | string | number;
const nothing = {};

export class Rows {
  readonly #rows = new Map<Key, Row>();
  /** Subjects of which more was than what is counted here. */
  readonly unseen = new Set<Key>();
  /** What of a row is known at the end alone. */
  about: (key: Key) => Partial<Pick<Row, 'name' | 'process'>> = () => nothing;

  of(key: Key, describe: () => About): Row {
    return madeOnce(this.#rows, key, () => ({
      ...{ instance: undefined, address: undefined, file: undefined, line: undefined, isInlined: false },
      ...describe(),
      ...{ calls: 0, lost: 0, stopped: 0, total: 0, self: 0, durations: new Durations() },
    }));
  }

  values(): Iterable<Row> {
    return this.#rows.values();
  }

  /** `facts`: what of the trace says what the numbers are worth. */
  all(facts: TraceFacts | undefined, tickNs: number): ReportRow[] {
    const leftOut = namesBound(facts?.probes ?? [], facts?.recording);
    const { timesAtMost, stopsBeside } = facts?.recording ?? {};
    // What has no time is no upper bound.
    const isAtMost = ({ stopped, durations, self }: Row): boolean =>
      (timesAtMost !== undefined || (stopsBeside !== undefined && stopped > 0)) && (durations.count > 0 || self > 0);
    const zeroAtMost = Math.ceil(tickNs) + (facts?.ownTime?.mostNs ?? 0);
    const boundOf = (key: Key, { subject, instance, isInlined }: Row): ReportRow['bound'] => {
      const isLeftOut =
        subject === undefined ? leftOut.size > 0 : [subject, instance ?? subject].some((name) => leftOut.has(name));
      if (isLeftOut) return 'left-out';
      return isInlined || this.unseen.has(key) ? 'inlined' : undefined;
    };
    return [...this.#rows].map(([key, row]) => {
      const { isInlined: _, stopped: __, subject: ___, ...shown } = row;
      const timesAtMost = isAtMost(row) ? Math.ceil(tickNs) : undefined;
      return { ...shown, ...this.about(key), bound: boundOf(key, row), timesAtMost, zeroAtMost };
    });
  }
}

/** A report: takes events as a sink, and has rows at the end. `sink` makes the rows. */
export class Report extends Filter {
  readonly #rows: Rows;
  #facts: TraceFacts | undefined;
  #tickNs = 1;

  constructor(rows: Rows, sink: TraceSink) {
    super(sink);
    this.#rows = rows;
  }

  override begin(info: TraceInfo): void {
    this.#tickNs = info.clock.resolutionNs;
    this.sink.begin(info);
  }

  event(event: TraceEvent): void {
    this.sink.event(event);
  }

  override end(facts?: TraceFacts): void {
    this.#facts = facts;
    this.sink.end(facts);
  }

  /** In no particular order. */
  rows(): ReportRow[] {
    return this.#rows.all(this.#facts, this.#tickNs);
  }
}
