import { type AwaitPlace, awaitPlace } from './await-place.js';
import { type Disturbance, ownSpans, type Span } from './disturbance.js';
import {
  type Cancelled,
  type FutureRef,
  type PollBegin,
  type PollEnd,
  type RootRef,
  type Stuck,
  type TraceEvent,
  timeOf,
  type Wake,
} from './events.js';
import type { Finding, FindingKind } from './finding.js';
import { isOfPart, isOfTask, NewestRoots } from './roots.js';
import { Fold } from './sinks.js';
import type { TaskRow } from './task-rows.js';
import { dropperText } from './text.js';

/** What a recording is certain of: all else is left out. */
interface Certainty extends Disturbance {
  /** Times are the program's own, because no probe stopped it. */
  readonly isTimed: boolean;
  /** Every wake was seen. */
  readonly seesWakes: boolean;
}

interface FindingLimits {
  /** Polls that take longer; 100 ms where it is left out. */
  readonly longPollNs?: number | undefined;
}

/** As asyncio's `slow_callback_duration`. */
const defaultLongPoll = 100e6;
/** As tokio-console's task that has never yielded. */
const longWait = 1e9;
const selfWakesInRow = 100;
const idlePollsInRow = 100;
/** As clippy's `large_futures`. */
const largeFuture = 16 * 1024;
const timesLarger = 4;
const mostTimes = 10;
const ABOUT_TIME: ReadonlySet<FindingKind> = new Set(['long-poll', 'woken-not-polled']);
const mostFindings = 1000;
/** As many as the table of tasks has ended ones. */
const mostDroppers = 10_000;
/** Polls and waits of one finding that are kept; of more it is only known that they were. */
const mostSpans = 10_000;

/** What the search keeps of a task that lives. */
interface Watched {
  readonly root: RootRef;
  outermost: PollBegin | undefined;
  /** A poll inside the present one has taken too long already. */
  isLong: boolean;
  /** A panic went through a poll inside the present one. */
  hasPanicked: boolean;
  hasWokenItself: boolean;
  /** Where its last poll came to wait, and in how many polls in a row it did and woke itself. */
  place: AwaitPlace | undefined;
  inside: AwaitPlace | undefined;
  row: number;
  woken: number | undefined;
  /** Not polled so far. */
  isNew: boolean;
  /** The present poll was caused by a wake, or is the first. */
  isWanted: boolean;
  /** Polls in a row that were not, and came to the same await. */
  idle: number;
  /** Some wake of it was seen. */
  isWakeable: boolean;
}

interface Found {
  kind: FindingKind;
  task: Watched;
  future: FutureRef;
  place: { readonly file: string | undefined; readonly line: number | undefined };
  count: number;
  readonly times: number[];
  worst: number;
  /** Of what is about time: from when, and how long. */
  readonly spans: Span[];
}

/** Looks for what slows tasks down, while events come. */
export class Findings extends Fold {
  readonly #longPoll: number;
  readonly #tasks = new NewestRoots<Watched>();
  readonly #found = new Map<string, Found>();
  /** Tasks that were woken and not polled since. */
  readonly #woken = new Set<Watched>();
  /** Who dropped a task before it was ready. */
  readonly #droppers = new Map<RootRef, string>();
  readonly #stuck: Stuck[] = [];
  /** A wake was seen whose task nothing says. */
  #strayWakes = false;
  #now = 0;

  constructor({ longPollNs = defaultLongPoll }: FindingLimits = {}) {
    super();
    this.#longPoll = longPollNs;
  }

  event(event: TraceEvent): void {
    this.#now = timeOf(event);
    if (isOfPart(event)) return;
    switch (event.type) {
      case 'poll-begin':
        this.#begins(event);
        break;
      case 'poll-end':
        this.#ends(event);
        break;
      case 'poll-lost':
        this.#forget(event.root);
        break;
      case 'wake':
        this.#wakes(event);
        break;
      case 'cancelled':
        this.#cancels(event);
        break;
      case 'stuck':
        if (this.#stuck.length < mostFindings) this.#stuck.push(event);
        break;
      case 'reset':
        this.#forgetAll(event.time);
        break;
      case 'gap':
        this.#forgetAll(event.from);
        break;
    }
  }

  /**
   * Everything that was found, in the order of tasks, as far as it is certain. `rows`: the table of tasks.
   */
  all(rows: readonly TaskRow[], certainty: Certainty, numberOf: (root: RootRef) => number): Finding[] {
    const { seesWakes } = certainty;
    for (const task of this.#woken) this.#late(task, this.#now);
    this.#woken.clear();
    const sure = [...this.#found.values()].flatMap((each) => {
      if (ABOUT_TIME.has(each.kind)) return this.#ownTime(each, certainty) ?? [];
      const wakesKnown = seesWakes && (!this.#strayWakes || each.task.isWakeable);
      return each.kind !== 'idle-polls' || wakesKnown ? each : [];
    });
    const found = sure.map(({ kind, task: { root }, future, place, count, times, worst }): Finding => {
      const { future: name, instance } = future;
      const at = place.file === undefined ? future : place;
      const where = { file: at.file ?? null, line: at.line ?? null };
      const size = kind === 'panicked' ? null : worst;
      const who = { task: numberOf(root), id: root.about?.id ?? null, future: name, instance };
      return { kind, ...who, ...where, count, times_ns: times, worst: size };
    });
    const stuck = this.#stuck.map((event) => ofStuck(event, event.root ? numberOf(event.root) : 0));
    const droppers = new Map([...this.#droppers].map(([root, by]) => [numberOf(root), by]));
    return [...found, ...ofRows(rows, droppers), ...stuck].sort((a, b) => a.task - b.task);
  }

  /** Findings that are made of time, of which nothing is left without what tracing took. */
  leftOut(certainty: Omit<Certainty, 'seesWakes'>): number {
    const timed = [...this.#found.values()].filter(({ kind }) => ABOUT_TIME.has(kind));
    return timed.filter((each) => this.#ownTime(each, certainty) === undefined).length;
  }

  /** What is left of a finding without the polls and waits in which tracing took time. */
  #ownTime(found: Found, { isTimed, ...disturbance }: Omit<Certainty, 'seesWakes'>): Found | undefined {
    const { stoppedAt = [], ringWaitedNs = 0 } = disturbance;
    if (!isTimed) return undefined;
    if (stoppedAt.length === 0 && ringWaitedNs === 0) return found;
    const limit = found.kind === 'long-poll' ? this.#longPoll : longWait;
    const own = ownSpans(found.spans, disturbance).filter(({ ns }) => ns >= limit);
    if (own.length === 0) return undefined;
    const worst = own.reduce((most, { ns }) => Math.max(most, ns), 0);
    return { ...found, count: own.length, times: own.slice(0, mostTimes).map(({ from }) => from), worst };
  }

  #begins(event: PollBegin): void {
    const task = this.#of(event.root);
    if (task.outermost) return;
    task.outermost = event;
    task.isLong = false;
    task.hasPanicked = false;
    task.hasWokenItself = false;
    task.inside = undefined;
    this.#late(task, event.time);
    task.isWanted = task.isNew || task.woken !== undefined;
    task.isNew = false;
    task.woken = undefined;
    this.#woken.delete(task);
  }

  #ends(event: PollEnd): void {
    const { root, begin, future, result, time } = event;
    const task = this.#tasks.get(root);
    if (!begin || task?.root !== root) return;
    if (result === 'pending' || result === 'unknown') task.inside = awaitPlace(event) ?? task.inside;
    if (time - begin.time >= this.#longPoll && !task.isLong) {
      // The innermost poll that takes so long is the one to look at: it ends first.
      task.isLong = true;
      this.#add({ kind: 'long-poll', task, future, place: begin.state ?? future }, begin.time, time - begin.time);
    }
    if (result === 'panicked' && !task.hasPanicked) {
      // The innermost one ends first.
      task.hasPanicked = true;
      this.#add({ kind: 'panicked', task, future, place: begin.state ?? future }, begin.time, 0);
    }
    if (begin !== task.outermost) return;
    task.outermost = undefined;
    const again = task.inside === task.place ? task.row + 1 : 1;
    const isSame = task.inside === task.place && result !== 'ready';
    task.row = task.hasWokenItself ? again : 0;
    task.idle = isSame && !task.isWanted ? task.idle + 1 : 0;
    task.place = task.inside;
    const place = task.place ?? future;
    const found = { task, future: root.future, place };
    if (task.row >= selfWakesInRow) this.#add({ kind: 'self-wake-loop', ...found }, begin.time, task.row);
    if (task.idle >= idlePollsInRow) this.#add({ kind: 'idle-polls', ...found }, begin.time, task.idle);
    // A waker of what is over may still be called: nobody need poll it.
    if (isOfTask(event) && (result === 'ready' || result === 'panicked')) this.#forget(root);
    // Woken in its own poll, it waits since that is over.
    else if (task.woken !== undefined) task.woken = time;
  }

  #cancels(event: Cancelled): void {
    const task = event.root && this.#tasks.get(event.root);
    if (!task || task.root !== event.root || !isOfTask(event)) return;
    this.#forget(task.root);
    if (this.#droppers.size < mostDroppers) this.#droppers.set(task.root, dropperText(event));
  }

  #wakes({ root, by, time }: Wake): void {
    if (!root) this.#strayWakes = true;
    const task = root && this.#tasks.get(root);
    if (!task || task.root !== root) return;
    if (by === root) task.hasWokenItself = true;
    task.isWakeable = true;
    task.woken ??= time;
    this.#woken.add(task);
  }

  /** Nothing more is known of a task, or it is gone. */
  #forget(root: RootRef): void {
    const task = this.#tasks.get(root);
    if (task?.root !== root) return;
    this.#tasks.delete(root);
    this.#woken.delete(task);
  }

  /** What tasks did from now on was not seen, or they are gone. */
  #forgetAll(until: number): void {
    for (const task of this.#woken) this.#late(task, until);
    this.#woken.clear();
    this.#tasks.clear();
  }

  /** A task is polled now, or never. */
  #late(task: Watched, until: number): void {
    const { future } = task.root;
    const waited = until - (task.woken ?? until);
    if (waited >= longWait)
      this.#add({ kind: 'woken-not-polled', task, future, place: future }, until - waited, waited);
  }

  #add(what: Pick<Found, 'kind' | 'task' | 'future' | 'place'>, time: number, worst: number): void {
    const key = `${what.kind} ${what.task.root.key} ${what.future.key}`;
    const known = this.#found.get(key);
    if (known) {
      known.count++;
      known.worst = Math.max(known.worst, worst);
      if (known.times.length < mostTimes) known.times.push(time);
      if (ABOUT_TIME.has(what.kind) && known.spans.length < mostSpans) known.spans.push({ from: time, ns: worst });
    } else if (this.#found.size < mostFindings) {
      this.#found.set(key, { ...what, count: 1, times: [time], worst, spans: [{ from: time, ns: worst }] });
    }
  }

  #of(root: RootRef): Watched {
    const known = this.#tasks.get(root);
    if (known?.root === root) return known;
    if (known) this.#woken.delete(known);
    const task: Watched = {
      root,
      ...{ outermost: undefined, isLong: false, hasPanicked: false, hasWokenItself: false },
      ...{ place: undefined, inside: undefined, row: 0, woken: undefined },
      ...{ isNew: true, isWanted: true, idle: 0, isWakeable: false },
    };
    this.#tasks.set(task);
    return task;
  }
}

function ofStuck({ why: kind, root, future, file, line, time, wait }: Stuck, task: number): Finding {
  const { future: name, instance } = future;
  const place = file === undefined ? future : { file, line };
  const where = { file: place.file ?? null, line: place.line ?? null };
  const who = { task, id: root?.about?.id ?? null, future: name, instance };
  return { kind, ...who, ...where, count: 1, times_ns: [time], worst: null, wait };
}

/** What the table of tasks shows. */
function ofRows(rows: readonly TaskRow[], droppers: ReadonlyMap<number, string>): Finding[] {
  const sizes = new Map(rows.flatMap(({ instance, size }) => (size === null ? [] : [[instance, size] as const])));
  const sorted = [...sizes.values()].sort((a, b) => a - b);
  const seen = new Set<string>();
  const found: Finding[] = [];
  for (const row of rows) {
    const { number: task, id, future, instance, file, line, size } = row;
    const what = { task, id, future, instance, count: 1 };
    if (row.state === 'dropped' || row.state === 'cancelled') {
      const place = row.await ?? { file, line };
      const times_ns = row.ended_ns === null ? [] : [row.ended_ns];
      const by = droppers.get(task) ?? null;
      found.push({ kind: 'dropped-pending', ...what, file: place.file, line: place.line, times_ns, worst: null, by });
    }
    const median = sorted[(sorted.length - 1) >> 1] ?? 0;
    if (size === null || size < largeFuture || seen.has(instance)) continue;
    if (sorted.length > 1 && size < timesLarger * median) continue;
    seen.add(instance);
    found.push({ kind: 'large-future', ...what, file, line, times_ns: [row.first_poll_ns], worst: size });
  }
  return found;
}
