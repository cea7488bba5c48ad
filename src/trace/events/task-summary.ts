import { hex } from '../../base/addr.js';
import { type AwaitPlace, awaitPlace } from './await-place.js';
import {
  type Cancelled,
  type FutureRef,
  type PollBegin,
  type PollEnd,
  type PollLost,
  type RootRef,
  type TraceEvent,
  timeOf,
  type Wake,
} from './events.js';
import { isOfPart, isOfTask, NewestRoots } from './roots.js';
import { Fold } from './sinks.js';
import type { StopError } from './summary.js';
import type { TaskRow, TaskState } from './task-rows.js';

/** What is counted of one task. */
interface Tally {
  readonly root: RootRef;
  readonly number: number;
  readonly first: number;
  state: TaskState;
  /** Its last poll was one of the root itself, and not only of what it holds. */
  isOwn: boolean;
  /** Its open polls, the outermost first. */
  readonly open: PollBegin[];
  polls: number;
  busy: number;
  max: number;
  idle: number;
  /** The end of its last poll. */
  last: number;
  ended: number | undefined;
  wakes: number;
  selfWakes: number;
  /** The first wake since its last poll began. */
  woken: number | undefined;
  scheduled: number;
  /** Polls that a wake caused, and the time between. */
  readonly delays: { count: number; sum: number; max: number };
  awaits: Awaited | undefined;
  /** Where a Future inside it waits that its present poll has polled. */
  inside: Awaited | undefined;
}

/** Tasks that have ended are kept up to this number; further ones are only counted. */
const mostEnded = 10_000;

/**
 * Follows each task from its first poll on. Memory grows with the addresses of tasks, and with ended ones to a limit.
 */
export class TaskSummary extends Fold {
  /** The newest task at each address of a space. */
  readonly #tasks = new NewestRoots<Tally>();
  readonly #ended: Tally[] = [];
  readonly #live = new Set<Tally>();
  readonly #numbers = new WeakMap<RootRef, number>();
  #count = 0;
  #leftOut = 0;
  /** The polls of each Future that belong to no known task. */
  readonly #parts = new Map<FutureRef, number>();
  /** A wake was seen whose task nothing says. */
  #strayWakes = false;
  #now = 0;

  event(event: TraceEvent): void {
    this.#now = timeOf(event);
    if (isOfPart(event)) this.#counts(event);
    else if (event.type === 'poll-begin') this.#begins(event);
    else if (event.type === 'poll-end') this.#ends(event);
    else if (event.type === 'poll-lost') this.#loses(event);
    else if (event.type === 'wake') this.#wakes(event);
    else if (event.type === 'cancelled' && isOfTask(event)) this.#cancels(event);
    else if (event.type === 'reset') this.#resets(event.time);
    else if (event.type === 'gap') for (const task of this.#live) task.woken = undefined; // It may have been polled.
  }

  /** Tasks that have ended and have no row, because there are too many. */
  get leftOut(): number {
    return this.#leftOut;
  }

  /** The number of a task, as its row has it; 0 if it has none. */
  numberOf(root: RootRef): number {
    return this.#numbers.get(root) ?? 0;
  }

  /** Polls that belong to no known task, because the Futures around were not seen. */
  get ofNoTask(): { readonly polls: number; readonly futures: readonly string[] } {
    const polls = [...this.#parts.values()].reduce((sum, polls) => sum + polls, 0);
    return { polls, futures: [...new Set([...this.#parts.keys()].map(({ future }) => future))] };
  }

  /** A row a task, in the order of their first polls. `seen`: which wakes were; none if undefined. */
  rows(seen?: 'all' | 'some', error?: StopError): TaskRow[] {
    const all = [...this.#ended, ...this.#live].sort((a, b) => a.number - b.number);
    return all.map((task) => ({
      ...this.#row(task),
      ...wakesOf(seen && !this.#mayHaveStray(task) ? task : undefined),
      wakes_at_least: seen === 'some',
      ...(error?.isUnknown && task.busy > 0 ? { times_at_most: true } : {}),
    }));
  }

  /**
   * Wakers need not point to what is known of a task: those of a thread that blocks on one point to the thread. A task
   * that was polled again without a wake may be another one than its place says.
   */
  #mayHaveStray({ wakes, root, polls }: Tally): boolean {
    return this.#strayWakes && wakes === 0 && (root.about === undefined || polls > 1);
  }

  #counts(event: TraceEvent): void {
    if (event.type !== 'poll-begin' && event.type !== 'derived-poll') return;
    this.#parts.set(event.future, (this.#parts.get(event.future) ?? 0) + 1);
  }

  #wakes({ root, by, time }: Wake): void {
    const task = root && this.#tasks.get(root);
    if (!root) this.#strayWakes = true;
    if (!task || task.root !== root || task.ended !== undefined) return;
    task.wakes++;
    if (by === root) task.selfWakes++;
    task.woken ??= time;
  }

  #cancels({ root, time, state }: Cancelled): void {
    const task = root && this.#tasks.get(root);
    if (!task || task.root !== root || task.ended !== undefined) return;
    task.state = 'cancelled';
    task.idle += time - task.last;
    task.awaits ??= state && placed({ ...state, inside: undefined });
    this.#over(task, time);
  }

  /** All tasks are gone. */
  #resets(time: number): void {
    for (const task of [...this.#live]) {
      if (isIdle(task)) task.idle += time - task.last;
      task.state = 'reset';
      this.#over(task, time);
    }
    this.#tasks.clear();
  }

  #begins(event: PollBegin): void {
    const task = this.#of(event.root);
    if (task.open.length === 0) {
      if (task.polls > 0) task.idle += event.time - task.last;
      if (task.woken !== undefined) {
        const delay = event.time - task.woken;
        const { delays } = task;
        delays.count++;
        delays.sum += delay;
        delays.max = Math.max(delays.max, delay);
        task.scheduled += event.time - Math.max(task.woken, task.last);
        task.woken = undefined;
      }
      task.polls++;
      task.state = 'running';
      task.inside = undefined;
    }
    task.open.push(event);
  }

  #ends(event: PollEnd): void {
    const task = this.#tasks.get(event.root);
    const begin = task && this.#closed(task, event);
    if (!task) return;
    const isWaiting = event.result === 'pending' || event.result === 'unknown';
    if (isWaiting) task.inside = placed(awaitPlace(event)) ?? task.inside;
    if (!begin) return;
    const time = event.time - begin.time;
    task.busy += time;
    task.max = Math.max(task.max, time);
    task.last = event.time;
    const isRoot = event.future === task.root.future && event.address === task.root.address;
    task.state = event.result === 'pending' ? 'waiting' : isRoot ? event.result : 'unknown';
    task.isOwn = isRoot;
    if (isWaiting) task.awaits = task.inside;
    else if (isRoot) this.#over(task, event.time);
  }

  #loses(event: PollLost): void {
    const task = this.#tasks.get(event.root);
    if (!task || !this.#closed(task, event)) return;
    task.last = event.time;
    task.state = 'lost';
  }

  /** The begin of a poll that is over, if it was the outermost. Those inside it are over too. */
  #closed({ root, open }: Tally, { root: ended, begin }: PollEnd | PollLost): PollBegin | undefined {
    const at = root.key === ended.key && begin ? open.lastIndexOf(begin) : -1;
    if (at < 0) return undefined;
    while (open.length > at) open.pop();
    return at === 0 ? begin : undefined;
  }

  #of(root: RootRef): Tally {
    const before = this.#tasks.get(root);
    if (before?.root.key === root.key) return before;
    // What lies where another task lay has its memory: that one was dropped.
    if (before && before.ended === undefined && before.state === 'waiting') {
      before.state = before.isOwn ? 'dropped' : 'unknown';
      before.idle += this.#now - before.last;
    }
    if (before) this.#over(before, this.#now);
    const first = this.#now;
    const task: Tally = {
      root,
      number: ++this.#count,
      ...{ first, state: 'running', isOwn: true, open: [], polls: 0, busy: 0, max: 0, idle: 0, last: first },
      ...{ wakes: 0, selfWakes: 0, woken: undefined, scheduled: 0, delays: { count: 0, sum: 0, max: 0 } },
      ended: undefined,
      awaits: undefined,
      inside: undefined,
    };
    this.#numbers.set(root, task.number);
    this.#tasks.set(task);
    this.#live.add(task);
    return task;
  }

  #over(task: Tally, time: number): void {
    if (task.ended !== undefined) return;
    task.ended = time;
    this.#live.delete(task);
    if (this.#ended.length < mostEnded) this.#ended.push(task);
    else this.#leftOut++;
  }

  #row(task: Tally): Omit<TaskRow, keyof WakeColumns | 'wakes_at_least'> {
    const { root, state, awaits, ended } = task;
    const { future, instance, file, line, size } = root.future;
    const { runtime = null, id = null, name = null, spawned = null } = root.about ?? {};
    // The end of the recording takes what is open for lost.
    const isCut = state === 'lost' && task.last === this.#now;
    return {
      number: task.number,
      future,
      instance,
      file: file ?? null,
      line: line ?? null,
      ...{ runtime, id, name, spawned },
      address: hex(root.address),
      ...(root.space === undefined ? {} : { space: hex(root.space) }),
      size: size ?? null,
      state: isCut ? 'running' : state,
      polls: task.polls,
      busy_ns: task.busy,
      max_ns: task.max,
      idle_ns: task.idle + (ended === undefined && isIdle(task) ? this.#now - task.last : 0),
      first_poll_ns: task.first,
      ended_ns: ended ?? null,
      await: awaits?.file === undefined ? null : awaitOf(awaits.file, awaits),
    };
  }
}

/** It is between two polls, as far as is known. */
function isIdle({ state }: Tally): boolean {
  return state !== 'running' && state !== 'lost';
}

type WakeColumns = ReturnType<typeof wakesOf>;

function wakesOf(
  task: Tally | undefined,
): Pick<TaskRow, 'scheduled_ns' | 'wakes' | 'self_wakes' | 'wake_to_poll_avg_ns' | 'wake_to_poll_max_ns'> {
  const { count = 0, sum = 0, max = 0 } = task?.delays ?? {};
  return {
    scheduled_ns: task?.scheduled ?? null,
    wakes: task?.wakes ?? null,
    self_wakes: task?.selfWakes ?? null,
    wake_to_poll_avg_ns: count > 0 ? Math.round(sum / count) : null,
    wake_to_poll_max_ns: count > 0 ? max : null,
  };
}

type Awaited = Pick<AwaitPlace, 'file' | 'line' | 'inside'>;

function awaitOf(file: string, { line, inside }: Awaited): TaskRow['await'] {
  return { file, line: line ?? null, ...(inside === undefined ? {} : { inside }) };
}

function placed(at: Awaited | undefined): Awaited | undefined {
  return at?.file === undefined ? undefined : at;
}
