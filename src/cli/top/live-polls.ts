// What a recording has seen so far, asked for again and again while it goes on.
import {
  Durations,
  Fold,
  isOfPart,
  type PollBegin,
  type RootRef,
  type TaskRow,
  TaskSummary,
  type TraceEvent,
  timeOf,
} from '../../trace/index.js';

/** A task, and what it did since it was asked for before. Times and rates are in the recording's own time. */
export interface PollsRow extends TaskRow {
  /** Of its polls so far, the time that 99 of 100 did not exceed. */
  readonly p99_ns: number | null;
  readonly polls_per_s: number;
  /** How long the poll that it is in takes already; 0 if it is in none. `busy_ns` has polls that are over. */
  readonly open_ns: number;
  /** The share of the time in which it was being polled, 0 to 1. */
  readonly busy: number;
  /** Null if wakes were not seen. */
  readonly wakes_per_s: number | null;
  /** Its share of each window, the oldest first. */
  readonly history: readonly number[];
}

/** What came between two moments at which a {@link LivePolls} was asked. */
export interface PollsWindow {
  /** From the event that ended the window before to the last one; 0 where there was none. */
  readonly ns: number;
  readonly events: number;
  /** Those that live, and those that ended in the window. */
  readonly tasks: readonly PollsRow[];
  /** Tasks that ended before. */
  readonly ended: number;
}

/** So many windows a task's history has. */
const WINDOWS = 60;

/** The polls of each task, so far and since it was asked before. */
export class LivePolls extends Fold {
  readonly #tasks = new TaskSummary();
  readonly #open = new Map<RootRef, PollBegin>();
  readonly #times = new Map<number, Durations>();
  #before = new Map<number, PollsRow>();
  #events = 0;
  #seesWakes = false;
  /** Of the last event, and of that which ended the last window. */
  #now = 0;
  #since: number | undefined;

  event(event: TraceEvent): void {
    this.#events++;
    this.#now = timeOf(event);
    this.#since ??= this.#now;
    this.#tasks.event(event);
    if (event.type === 'wake') this.#seesWakes = true;
    if (!isOfPart(event)) this.#time(event);
  }

  window(): PollsWindow {
    const ns = this.#now - (this.#since ?? this.#now);
    if (ns > 0) this.#since = this.#now;
    const next = new Map<number, PollsRow>();
    const rows = this.#tasks.rows(this.#seesWakes ? 'some' : undefined);
    const open = new Map([...this.#open].map(([root, { time }]) => [this.#tasks.numberOf(root), time]));
    let ended = this.#tasks.leftOut;
    for (const row of rows) {
      const before = this.#before.get(row.number);
      if (row.ended_ns !== null && (before === undefined ? row.ended_ns < this.#now - ns : before.ended_ns !== null)) {
        ended++;
        this.#times.delete(row.number);
      } else next.set(row.number, this.#row(row, before, this.#now - (open.get(row.number) ?? this.#now), ns));
    }
    this.#before = next;
    return { ns, events: this.#events, tasks: [...next.values()], ended };
  }

  /** `openNs`: how long the poll takes already in which the task is. */
  #row(row: TaskRow, before: PollsRow | undefined, openNs: number, ns: number): PollsRow {
    const rate = (now: number, then: number): number => (ns === 0 ? 0 : ((now - then) * 1e9) / ns);
    const [now, then] = [row.busy_ns + openNs, before ? before.busy_ns + before.open_ns : 0];
    const busy = Math.max(0, Math.min(1, rate(now, then) / 1e9));
    const p99 = this.#times.get(row.number)?.percentile(0.99);
    return {
      ...row,
      p99_ns: p99 ?? null,
      polls_per_s: rate(row.polls, before?.polls ?? 0),
      busy,
      open_ns: openNs,
      wakes_per_s: row.wakes === null ? null : rate(row.wakes, before?.wakes ?? 0),
      history: [...(before?.history ?? []), busy].slice(-WINDOWS),
    };
  }

  /** The outermost polls of a task. */
  #time(event: TraceEvent): void {
    if (event.type === 'poll-begin') {
      if (!this.#open.has(event.root)) this.#open.set(event.root, event);
    } else if (event.type === 'poll-end' || event.type === 'poll-lost') {
      const begin = this.#open.get(event.root);
      if (begin === undefined || event.begin !== begin) return;
      this.#open.delete(event.root);
      if (event.type === 'poll-lost') return;
      const number = this.#tasks.numberOf(event.root);
      const times = this.#times.get(number) ?? new Durations();
      times.add(event.time - begin.time);
      this.#times.set(number, times);
    }
  }
}
