// What is found in tasks, as `--json` prints it.
import type { Stuck } from './events.js';

/**
 * `long-poll`: a poll took so long that other tasks of its executor had to wait. `self-wake-loop`: a task woke itself
 * in each of many polls, and came to the same await again. `idle-polls`: a task was polled many times though nobody had
 * woken it, and came to the same await each time. `woken-not-polled`: the executor did not poll a woken task for long.
 * `panicked`: a panic went through a poll and was caught. `dropped-pending`: a task's Future was dropped before it was
 * ready. `large-future`: a task's Future is much larger than those of the others. `deadlock`, `likely-deadlock`,
 * `lost-wake`: at the end memory showed that a task will not be polled again ({@link Stuck}).
 */
export type FindingKind =
  | 'long-poll'
  | 'self-wake-loop'
  | 'idle-polls'
  | 'woken-not-polled'
  | 'panicked'
  | 'dropped-pending'
  | 'large-future'
  | Stuck['why'];

/** What is worth a look, as `--json` prints it. Times are guest nanoseconds since the trace's first event. */
export interface Finding {
  readonly kind: FindingKind;
  /** The number of the task, as in the table of tasks; 0 for one that was not polled while it was recorded. */
  readonly task: number;
  /** Its number at its runtime; null if that is not known. */
  readonly id: number | null;
  readonly future: string;
  readonly instance: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly count: number;
  /** When: the first of them, ten at most. */
  readonly times_ns: readonly number[];
  /**
   * The longest poll or wait, in nanoseconds; the polls in a row; the size in bytes; null for what has no size:
   * `panicked`, `dropped-pending`, deadlocks, lost wakes.
   */
  readonly worst: number | null;
  /** For `dropped-pending`: who dropped it; null if only the memory of the task shows that it is gone. */
  readonly by?: string | null;
  /** Of a deadlock and a lost wake: for what the task waits, and who could end that, in words. */
  readonly wait?: string;
}
