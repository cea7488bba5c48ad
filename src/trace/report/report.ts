import { hex } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import { namesBound } from '../events/bounds.js';
import { type CallTime, TimedFold } from '../events/call-times.js';
import { Durations } from '../events/durations.js';
import type {
  AnyBegin,
  AnyEnd,
  CallEnd,
  CallLost,
  FunctionRef,
  FutureRef,
  HartInfo,
  PollEnd,
  PollLost,
  RootRef,
  StateRef,
  TraceEvent,
  TraceFacts,
  TraceInfo,
  TraceSink,
} from '../events/events.js';
import { HartLabels } from '../events/hart-labels.js';
import type { Chosen } from '../events/selection.js';
import { placeText, rootText, waitingState } from '../events/text.js';
import { Lanes } from '../formats/lanes.js';

/** What a report has a row for. */
export const groupings = ['fn', 'future', 'task', 'hart', 'await'] as const;
export type Grouping = (typeof groupings)[number];

/** One row. Times are nanoseconds of the trace's clock. */
export interface ReportRow {
  readonly name: string;
  /** With generic arguments; undefined where there is no such name. */
  readonly instance: string | undefined;
  readonly address: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** Calls, polls, or waits. */
  readonly calls: number;
  /**
   * Why `calls` is a lower bound: a probe was left out, or switched off on the way, or the compiler inlined polls.
   * Undefined if it is none.
   */
  readonly bound: 'left-out' | 'inlined' | undefined;
  /** Times are upper bounds, and this is the least that one may be: a tick of the clock. Undefined if they are not. */
  readonly timesAtMost: number | undefined;
  /** What a time of 0 is less than: a tick of the clock, and what of an event durations leave out. */
  readonly zeroAtMost: number;
  /** Those whose end was not seen; they have no time. */
  readonly lost: number;
  /** Time inside, recursion counted once. */
  readonly total: number;
  /** Without the traced calls and polls inside. */
  readonly self: number;
  readonly durations: Durations;
}

interface Row {
  readonly name: string;
  readonly instance: string | undefined;
  readonly address: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  calls: number;
  lost: number;
  total: number;
  self: number;
  /** Not every poll of it is seen, because the compiler inlined some. */
  isInlined: boolean;
  readonly durations: Durations;
}

/** What a row is about, which begins and ends: a call, a poll. */
interface Subject {
  readonly key: object | string | number;
  readonly describe: () => Pick<Row, 'name'> &
    Partial<Pick<Row, 'instance' | 'address' | 'file' | 'line' | 'isInlined'>>;
  /** Whether it is one more, with a time of its own. `outermost`: if no other that is chosen is around it. */
  readonly counts: boolean | 'outermost';
}

export interface Report extends TraceSink {
  /** In no particular order. */
  rows(): ReportRow[];
}

/** A report of events, which it takes as a sink. `chosen`: of these alone. */
export function reportBy(grouping: Grouping, chosen?: Chosen): Report {
  if (grouping === 'await') return awaitReport(chosen);
  return new CallReport(subjectOf[grouping], chosen);
}

type SubjectOf = (begin: AnyBegin, labels: HartLabels) => Subject | undefined;

const subjectOf: Readonly<Record<Exclude<Grouping, 'await'>, SubjectOf>> = {
  fn: (begin) => (begin.type === 'call-begin' ? functionSubject(begin.function) : undefined),
  future: (begin) => (begin.type === 'poll-begin' ? futureSubject(begin.future) : undefined),
  task: (begin) =>
    begin.type === 'poll-begin' && !begin.root.isPart ? taskSubject(begin.root, isOwnPoll(begin)) : undefined,
  hart: ({ hart }, labels) => ({
    key: hart,
    counts: 'outermost',
    describe: () => ({ name: labels.of(hart) }),
  }),
};

function functionSubject(fn: FunctionRef): Subject {
  const { name, instance, address, file, line } = fn;
  return { key: fn, counts: true, describe: () => ({ name, instance, address: hex(address), file, line }) };
}

function futureSubject(future: FutureRef): Subject {
  const { future: name, instance, file, line } = future;
  return {
    key: future,
    counts: true,
    describe: () => ({ name, instance, file, line, isInlined: future.inlined === true }),
  };
}

function taskSubject(root: RootRef, counts: boolean): Subject {
  const { future, address } = root;
  const { file, line, instance } = future;
  const about = { instance, address: hex(address), file, line, isInlined: future.inlined === true };
  return { key: root, counts, describe: () => ({ name: rootText(root), ...about }) };
}

/** A poll of the task itself, not of what it awaits. */
function isOwnPoll({ root, future, address }: AnyBegin & { type: 'poll-begin' }): boolean {
  return address === root.address && future.key === root.future.key;
}

class Rows {
  readonly #rows = new Map<Subject['key'], Row>();
  /** Subjects of which more was than what is counted here. */
  readonly unseen = new Set<Subject['key']>();

  of({ key, describe }: Subject): Row {
    return madeOnce(this.#rows, key, () => ({
      ...{ instance: undefined, address: undefined, file: undefined, line: undefined, isInlined: false },
      ...describe(),
      ...{ calls: 0, lost: 0, total: 0, self: 0, durations: new Durations() },
    }));
  }

  all(facts: TraceFacts | undefined, tickNs: number): ReportRow[] {
    const leftOut = namesBound(facts?.probes ?? [], facts?.recording?.missing);
    const timesAtMost = facts?.recording?.timesAtMost === undefined ? undefined : Math.ceil(tickNs);
    const zeroAtMost = Math.ceil(tickNs) + (facts?.ownTime?.mostNs ?? 0);
    const boundOf = (key: Subject['key'], { name, instance, isInlined }: Row): ReportRow['bound'] => {
      if (leftOut.has(name) || (instance !== undefined && leftOut.has(instance))) return 'left-out';
      return isInlined || this.unseen.has(key) ? 'inlined' : undefined;
    };
    return [...this.#rows].map(([key, row]) => ({ ...row, bound: boundOf(key, row), timesAtMost, zeroAtMost }));
  }
}

class CallReport extends TimedFold implements Report {
  readonly #subjectOf: SubjectOf;
  readonly #labels = new HartLabels();
  readonly #rows = new Rows();
  #facts: TraceFacts | undefined;
  #tickNs = 1;

  constructor(subject: SubjectOf, chosen: Chosen | undefined) {
    super(chosen);
    this.#subjectOf = subject;
  }

  override begin(info: TraceInfo): void {
    this.#tickNs = info.clock.resolutionNs;
    this.#labels.begin(info);
  }

  override hart(hart: HartInfo): void {
    this.#labels.hart(hart);
  }

  override end(facts?: TraceFacts): void {
    this.#facts = facts;
  }

  protected began(begin: AnyBegin): void {
    const subject = this.#subject(begin);
    if (subject && this.#counts(subject, begin)) this.#rows.of(subject).calls++;
  }

  rows(): ReportRow[] {
    return this.#rows.all(this.#facts, this.#tickNs);
  }

  #subject(begin: AnyBegin): Subject | undefined {
    return this.#subjectOf(begin, this.#labels);
  }

  protected returned(event: CallEnd | PollEnd, spent: CallTime): void {
    const begin = event.begin ?? beginOf(event);
    const subject = this.#subject(begin);
    if (!subject) return;
    const row = this.#rows.of(subject);
    row.self += spent.self;
    if (!this.#counts(subject, begin)) return;
    if (event.wasLost) row.lost--;
    // Of outermost calls, recursion is inside one of them.
    row.total += subject.counts === 'outermost' ? spent.time : spent.total;
    row.durations.add(spent.time);
  }

  protected override lost(event: CallLost | PollLost): void {
    const begin = event.begin ?? beginOf(event);
    const subject = this.#subject(begin);
    if (subject && this.#counts(subject, begin)) this.#rows.of(subject).lost++;
  }

  protected override other(event: Exclude<TraceEvent, AnyBegin | AnyEnd>): void {
    if (event.type !== 'derived-poll') return;
    const subject = this.#subject({ ...event, type: 'poll-begin', state: undefined, depth: 0 });
    if (subject) this.#rows.unseen.add(subject.key);
  }

  #counts({ counts }: Subject, begin: AnyBegin): boolean {
    if (counts !== 'outermost') return counts;
    for (let { around } = begin; around; around = around.around) if (!this.isOther(around)) return false;
    return true;
  }
}

/** Of an end whose begin was not seen: as much of the begin as it says. */
function beginOf(event: AnyEnd): AnyBegin {
  if (event.type === 'call-end' || event.type === 'call-lost') return { ...event, type: 'call-begin', arguments: [] };
  return { ...event, type: 'poll-begin', state: undefined };
}

/** The Future that waits there, whose code has that line. */
function awaiting({ chain, future }: PollEnd, at: StateRef | undefined): string {
  const link = chain.findLast(({ state }) => state !== undefined && state === at);
  return link === undefined ? future.future : (link.future?.future ?? link.typeName);
}

/** Waits: from a task's poll that is pending to its next one, by the innermost await with a known place. */
function awaitReport(chosen: Chosen | undefined): Report {
  const rows = new Rows();
  const since = new Map<RootRef, { readonly row: Row; readonly time: number }>();
  const rowOf = (end: PollEnd, at: StateRef | undefined): Row | undefined => {
    const place = (at && placeText(at)) ?? 'waiting';
    const name = awaiting(end, at);
    if (chosen !== undefined && ![end.root.future.future, name, place].some(chosen.note)) return undefined;
    const describe = () => ({ name, file: at?.file, line: at?.line });
    const row = rows.of({ key: place, counts: true, describe });
    row.calls++;
    return row;
  };
  const waited = (row: Row, time: number): void => {
    row.total += time;
    row.self += time;
    row.durations.add(time);
  };
  const lanes = new Lanes({
    waitBegin: (end, _name, at) => {
      const row = rowOf(end, at);
      if (row !== undefined) since.set(end.root, { row, time: end.time });
    },
    waitEnd: (root, time) => {
      const wait = since.get(root);
      if (wait === undefined) return;
      since.delete(root);
      waited(wait.row, time - wait.time);
    },
    lateWait: (end, until) => {
      const row = rowOf(end, waitingState(end));
      if (row !== undefined) waited(row, until - end.time);
    },
  });
  let facts: TraceFacts | undefined;
  let tickNs = 1;
  return {
    begin: (info) => {
      tickNs = info.clock.resolutionNs;
      lanes.begin(info);
    },
    event: (event) => lanes.event(event),
    hart: (hart) => lanes.hart(hart),
    flush: () => lanes.flush(),
    end: (told) => {
      facts = told;
      lanes.end(told);
    },
    rows: () => rows.all(facts, tickNs),
  };
}
