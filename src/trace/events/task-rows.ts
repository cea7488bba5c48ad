// What is known of tasks at the end, as `--json` prints it.

/**
 * What a task was doing when the recording ended. `cancelled`: its Future was dropped before it was ready. `dropped`:
 * the same, which shows only in that another task has its memory: `ended_ns` is then when that was seen. `lost`: the
 * end of its last poll was not seen. `unknown`: the result of its last poll is not in memory. `reset`: the machine was
 * reset before it ended.
 */
export type TaskState =
  | 'running'
  | 'waiting'
  | 'ready'
  | 'panicked'
  | 'cancelled'
  | 'dropped'
  | 'lost'
  | 'unknown'
  | 'reset';

/** One task: the outermost Future that was polled, as `--json` prints it. Times are guest nanoseconds. */
export interface TaskRow {
  /** In the order of their first polls, from 1. */
  readonly number: number;
  readonly future: string;
  readonly instance: string;
  readonly file: string | null;
  readonly line: number | null;
  /** What its runtime knows of it; null if nothing, or if that was not seen. */
  readonly runtime: string | null;
  readonly id: number | null;
  readonly name: string | null;
  /** Where it was spawned: `src/main.rs:12:5`. */
  readonly spawned: string | null;
  /** Of the Future. */
  readonly address: string;
  /** The root of its process's page tables, where a kernel runs several. */
  readonly space?: string;
  /** Bytes of the Future. */
  readonly size: number | null;
  readonly state: TaskState;
  /** Polls of the task: those of its Futures that stand in no other poll of it. */
  readonly polls: number;
  /** Time in these polls. */
  readonly busy_ns: number;
  /** The longest of them. */
  readonly max_ns: number;
  /** `busy_ns` and `max_ns` are upper bounds, see `SummaryRow`. */
  readonly times_at_most?: true;
  /** Time between them, and from the last one to the end of the recording if it will be polled again. */
  readonly idle_ns: number;
  /**
   * Of `idle_ns`, the time from a wake to the next poll; null if wakes were not seen, as in the next four. Null also if
   * some wakes were of no task, and nothing says that none of them was this one's.
   */
  readonly scheduled_ns: number | null;
  readonly wakes: number | null;
  /** `wakes` is a lower bound, because not every inlined wake leaves a mark. */
  readonly wakes_at_least: boolean;
  /** Those of `wakes` in a poll of the task. */
  readonly self_wakes: number | null;
  /** From the first wake since a poll began to the next poll: the mean, and the longest. */
  readonly wake_to_poll_avg_ns: number | null;
  readonly wake_to_poll_max_ns: number | null;
  /** When it was first polled, since the trace's first event. */
  readonly first_poll_ns: number;
  /** When it was ready, dropped, unwound, or the machine was reset; null if it was not. */
  readonly ended_ns: number | null;
  /**
   * Where it waits, or waited last, in its own code: and what of a library it awaits there. Null if it never did, or no
   * file is known.
   */
  readonly await: { readonly file: string; readonly line: number | null; readonly inside?: string } | null;
}
