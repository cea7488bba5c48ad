import { type Addr, hex } from '../../base/addr.js';
import { type AwaitPlace, awaitPlace, awaitText, isWaitNamed } from '../events/await-place.js';
import { wholeAwait } from '../events/await-ways.js';
import { type CallTime, TimedFold } from '../events/call-times.js';
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
  ThreadRef,
  TraceEvent,
  TraceInfo,
  TraceSink,
} from '../events/events.js';
import { Processes, processText, spaceOf } from '../events/processes.js';
import { isOfTask } from '../events/roots.js';
import type { Chosen } from '../events/selection.js';
import { onEvents, tee } from '../events/sinks.js';
import { HartLabels, rootText, threadText } from '../events/text.js';
import { Lanes } from '../formats/lanes.js';
import { Latency } from './latency.js';
import { type About, type Key, Report, type Row, Rows } from './rows.js';

/** What a report has a row for. */
export const groupings = ['fn', 'future', 'latency', 'task', 'hart', 'thread', 'process', 'await'] as const;
export type Grouping = (typeof groupings)[number];

export type { Report, ReportRow } from './rows.js';

/** What a report by calls and polls has rows of. */
interface Subjects<K extends Key> {
  /** What a call or poll is of; undefined if it has no row. */
  readonly of: (begin: AnyBegin) => K | undefined;
  readonly describe: (key: K, labels: HartLabels) => About;
  /** Whether it is one more, with a time of its own; left out if each is. */
  readonly counts?: (begin: AnyBegin) => boolean;
  /** Only that counts which no other that is chosen is around. */
  readonly isOutermost?: boolean;
}

/**
 * A report of events, which it takes as a sink. `chosen`: of these alone. `isFull`: awaits with the library's below.
 */
export function reportBy(grouping: Grouping, chosen?: Chosen, isFull = false): Report {
  const rows = new Rows();
  if (grouping === 'await') return new Report(rows, awaits(rows, chosen, isFull));
  return new Report(rows, grouping === 'latency' ? new Latency(rows, chosen) : subjects[grouping](rows, chosen));
}

const functions: Subjects<FunctionRef> = {
  // Locks have a table of their own.
  of: (begin) =>
    begin.type === 'call-begin' && !isOnCpu(begin) && begin.function.kind !== 'lock' ? begin.function : undefined,
  describe: ({ name, instance, address, file, line }) => {
    return { name, subject: name, instance, address: hex(address), file, line };
  },
};

const futures: Subjects<FutureRef> = {
  of: (begin) => (begin.type === 'poll-begin' ? begin.future : undefined),
  describe: ({ future: name, instance, file, line, inlined: isInlined = false }) => {
    return { name, subject: name, instance, file, line, isInlined };
  },
};

const tasks: Subjects<RootRef> = {
  of: (begin) => (begin.type === 'poll-begin' && !begin.root.isPart ? begin.root : undefined),
  // A poll of the task itself, not of what it awaits.
  counts: (begin) => begin.type === 'poll-begin' && isOfTask(begin),
  describe: (root, labels) => {
    return { ...futures.describe(root.future, labels), name: rootText(root), address: hex(root.address) };
  },
};

const harts: Subjects<number> = {
  of: (begin) => (isOnCpu(begin) || isHartsThread(begin) ? undefined : begin.hart),
  isOutermost: true,
  describe: (hart, labels) => ({ name: labels.of(hart) }),
};

/** Those that are known by context switches or by their stacks; what is in none of them by its hart. */
const threads: Subjects<ThreadRef | number> = {
  of: (begin) => (isHartsThread(begin) ? undefined : (begin.thread ?? begin.hart)),
  isOutermost: true,
  describe: (thread, labels) => {
    if (typeof thread === 'number') return { name: labels.of(thread) };
    return { name: thread.name ?? threadText(thread), address: hex(thread.stack) };
  },
};

/** A time that a thread had a hart, on its own track. */
function isOnCpu({ thread }: AnyBegin): boolean {
  return thread?.name !== undefined;
}

/** The same on the hart's track: all that happens meanwhile is in it. */
function isHartsThread(begin: AnyBegin): boolean {
  return begin.type === 'call-begin' && !begin.thread && begin.function.kind === 'thread';
}

/** Of programs that a kernel runs: by address space, and by program where several are traced. */
function byProcess(rows: Rows, chosen: Chosen | undefined): TraceSink {
  const seen = new Processes();
  const processes = new Map<string, { readonly space: Addr; readonly program: string | undefined }>();
  const calls = new Calls(
    rows,
    {
      of: (begin: AnyBegin) => {
        const space = spaceOf(begin);
        if (space === undefined) return 'in no process';
        const program = begin.thread?.program;
        const name = `${processText(space)}${program === undefined ? '' : ` in ${program}`}`;
        processes.set(name, { space, program });
        return name;
      },
      isOutermost: true,
      describe: (name) => ({ name }),
    },
    chosen,
  );
  rows.about = (name) => {
    const { space, program } = processes.get(String(name)) ?? {};
    const process = space === undefined ? undefined : seen.of(space);
    if (!process) return {};
    const called = process.thread === undefined ? '' : `, ${process.thread}`;
    const text = `${processText(process.space)}${called}${program === undefined ? '' : ` in ${program}`}`;
    return { name: text, process };
  };
  return tee([calls, onEvents((event) => void seen.on(event))]);
}

const byCalls = <K extends Key>(of: Subjects<K>) => {
  return (rows: Rows, chosen: Chosen | undefined): TraceSink => new Calls(rows, of, chosen);
};

const subjects = {
  fn: byCalls(functions),
  future: byCalls(futures),
  task: byCalls(tasks),
  hart: byCalls(harts),
  thread: byCalls(threads),
  process: byProcess,
};

/** A row a subject. */
class Calls<K extends Key> extends TimedFold {
  readonly #subjects: Subjects<K>;
  readonly #labels = new HartLabels();
  readonly #rows: Rows;
  /** The poll around one that is chosen need not be. */
  readonly #isFiltered: boolean;

  constructor(rows: Rows, subjects: Subjects<K>, chosen: Chosen | undefined) {
    super(chosen);
    this.#isFiltered = chosen !== undefined;
    this.#rows = rows;
    this.#subjects = subjects;
  }

  override begin(info: TraceInfo): void {
    this.#labels.begin(info);
  }

  override hart(hart: HartInfo): void {
    this.#labels.hart(hart);
  }

  protected began(begin: AnyBegin): void {
    const row = this.#counts(begin) ? this.#rowOf(begin) : undefined;
    if (row) row.calls++;
  }

  protected returned(event: CallEnd | PollEnd, spent: CallTime): void {
    const begin = event.begin ?? beginOf(event);
    const row = this.#rowOf(begin);
    if (!row) return;
    row.self += spent.self;
    if (!this.#counts(begin)) return;
    if (event.wasLost) row.lost--;
    if (event.stopped) row.stopped++;
    // Of outermost calls, recursion is inside one of them.
    row.total += this.#subjects.isOutermost ? spent.time : spent.total;
    row.durations.add(spent.time);
  }

  protected override lost(event: CallLost | PollLost): void {
    const begin = event.begin ?? beginOf(event);
    const row = this.#counts(begin) ? this.#rowOf(begin) : undefined;
    if (row) row.lost++;
  }

  protected override other(event: Exclude<TraceEvent, AnyBegin | AnyEnd>): void {
    if (event.type !== 'derived-poll') return;
    // Spelt out, because a spread takes as long as all else that is done here.
    const { time, hart, root, future, address } = event;
    const begin = { type: 'poll-begin', time, hart, root, future, address, state: undefined, depth: 0 } as const;
    const key = this.#subjects.of(begin);
    // It lies in a poll of the Future around it, so a task's or a hart's outermost are all seen.
    if (key !== undefined && this.#countsDerived(begin)) this.#rows.unseen.add(key);
  }

  #rowOf(begin: AnyBegin): Row | undefined {
    const key = this.#subjects.of(begin);
    return key === undefined ? undefined : this.#rows.of(key, () => this.#subjects.describe(key, this.#labels));
  }

  #countsDerived(begin: AnyBegin): boolean {
    const { counts, isOutermost } = this.#subjects;
    return isOutermost ? this.#isFiltered : (counts?.(begin) ?? true);
  }

  #counts(begin: AnyBegin): boolean {
    const { counts, isOutermost } = this.#subjects;
    if (!isOutermost) return counts?.(begin) ?? true;
    for (let { around } = begin; around; around = around.around) if (!this.isOther(around)) return false;
    return true;
  }
}

/** Of an end whose begin was not seen: as much of the begin as it says. */
function beginOf(event: AnyEnd): AnyBegin {
  if (event.type === 'call-end' || event.type === 'call-lost') return { ...event, type: 'call-begin', arguments: [] };
  return { ...event, type: 'poll-begin', state: undefined };
}

/**
 * Waits: from a task's poll that is pending to its next one, by the innermost await of its own code. A name chooses all
 * waits inside the Futures that it names.
 */
function awaits(rows: Rows, chosen: Chosen | undefined, isFull: boolean): TraceSink {
  const since = new Map<RootRef, { readonly row: Row; readonly time: number }>();
  const rowOf = (end: PollEnd, at: AwaitPlace | undefined): Row | undefined => {
    const place = (at && awaitText(at)) ?? 'waiting';
    const whole = isFull ? wholeAwait(end) : undefined;
    const name = whole ?? at?.future ?? end.future.future;
    if (chosen && !isWaitNamed(end, chosen.note)) return undefined;
    const row = rows.of(whole ?? place, () => ({ name, file: at?.file, line: at?.line, inside: at?.inside }));
    row.calls++;
    return row;
  };
  const waited = (row: Row, time: number): void => {
    row.total += time;
    row.self += time;
    row.durations.add(time);
  };
  return new Lanes({
    waitBegin: (end, _name, at) => {
      const row = rowOf(end, at);
      if (row !== undefined) since.set(end.root, { row, time: end.time });
    },
    waitEnd: (root, time, _name, isSeen) => {
      const wait = since.get(root);
      since.delete(root);
      if (wait && isSeen) waited(wait.row, time - wait.time);
    },
    lateWait: (end, until) => {
      const row = rowOf(end, awaitPlace(end));
      if (row !== undefined) waited(row, until - end.time);
    },
  });
}
