import { madeOnce } from '../../base/made-once.js';
import type { AwaitPlace } from '../events/await-place.js';
import type {
  AnyBegin,
  AnyEnd,
  CallEnd,
  Cancelled,
  ConsoleLine,
  DerivedPoll,
  Gap,
  GuestNanos,
  HartInfo,
  PlaceHit,
  PollBegin,
  PollEnd,
  Reset,
  RootRef,
  Sample,
  StateChange,
  Stuck,
  ThreadRef,
  TraceFacts,
  TraceInfo,
  Wake,
  WatchHit,
} from '../events/events.js';
import type { Track } from '../events/open-calls.js';
import type { Process, ProcessRef } from '../events/processes.js';
import { threadText } from '../events/text.js';
import type { Served } from './served-calls.js';

/**
 * `lost`: another Future is at its address now, and the end of its last poll was not seen. `reset`: the machine was reset.
 */
export type LifeEnd = 'ready' | 'panicked' | 'dropped' | 'lost' | 'reset';

/** What a format with timelines may write. */
interface LaneEvents {
  begin(info: TraceInfo): void;
  hart(hart: HartInfo): void;
  /** Seen for the first time, before its threads and tasks. */
  process(process: ProcessRef): void;
  /** What the trace has shown of all of them: once, right before the end. */
  processes(all: readonly Process[]): void;
  /** Seen for the first time. */
  thread(thread: ThreadRef): void;
  /**
   * A slice on the thread's lane, if a thread is known; else on the hart's. Of a poll `isOutermost`: no other one of
   * its root is open; and `wake`: the number of the wake that caused it, if that was seen.
   */
  enter(begin: AnyBegin, isOutermost?: boolean, wake?: number, served?: Served): void;
  /**
   * The end of `begin`'s slice. `lost`: of what happened only the end is known. `cut`: it is on another stack, or over;
   * its own end is emitted without a slice. `served`: of a system call that was, its number.
   */
  leave(begin: AnyBegin, time: GuestNanos, how: PollEnd | CallEnd | 'lost' | 'cut', served?: number): void;
  flush(): void;
  end(facts?: TraceFacts): void;
  /** A root Future seen for the first time: its lane starts. */
  lifeBegin(root: RootRef, time: GuestNanos): void;
  /** Its last poll ended, or another Future is at its address now (`dropped`). */
  lifeEnd(root: RootRef, time: GuestNanos, how: LifeEnd): void;
  /** Between two polls, on the root's lane. */
  waitBegin(end: PollEnd, name: string, at: AwaitPlace | undefined): void;
  /** `isSeen`: false where events are missing from then on. */
  waitEnd(root: RootRef, time: GuestNanos, name: string, isSeen: boolean): void;
  /** A wait that is over, of a poll whose end did not show that it was pending: its next poll has shown it. */
  lateWait(end: PollEnd, until: GuestNanos): void;
  /** A poll on the root's lane, which begins and ends in front of its slice on the hart's. `end`: undefined if lost. */
  rootEnter(event: PollBegin): void;
  rootLeave(begin: PollBegin, time: GuestNanos, end: PollEnd | undefined): void;
  /** An end whose begin was not seen, or whose slice has been cut. There is no slice to end. */
  orphan(event: AnyEnd): void;
  state(event: StateChange): void;
  derived(event: DerivedPoll): void;
  /** An instant on the hart's lane; the value, if it is a number, on a lane of the place. */
  watch(event: WatchHit): void;
  /** An instant on the hart's lane. */
  place(event: PlaceHit): void;
  /** A slice on a lane of its own. */
  gap(event: Gap): void;
  /** An instant on the hart's lane. `number`: of a wake that causes a poll, from 1. */
  wake(event: Wake, number: number | undefined): void;
  /** What a hart ran at that moment. */
  sample(event: Sample): void;
  /** An instant on the hart's lane. */
  cancelled(event: Cancelled): void;
  /** An instant on the root's lane; of all harts without a root. */
  stuck(event: Stuck): void;
  /** An instant of all harts. */
  reset(event: Reset): void;
  /** An instant on a lane of its own. */
  console(event: ConsoleLine): void;
  /** From now on so many tasks wait, and so many were woken since and wait for their poll. */
  tasks(time: GuestNanos, waiting: number, runnable: number): void;
}

/**
 * A format with timelines; it leaves out what it has no place for. Each hart, each thread and each root Future has a
 * lane. Slices on a lane nest, and times on a lane never go back.
 */
export type LaneWriter = Partial<LaneEvents>;

/** The number of the first thread that is known by its stack; no hart has so high a number. */
export const FIRST_THREAD = 100_001;

/** The number of a hart's or thread's lane: not 0, which viewers take as the idle thread. */
export function tidOf({ hart, thread }: Track): number {
  return thread ? FIRST_THREAD + thread.key : hart + 1;
}

/** A format that keeps something of each hart and each thread. */
export abstract class TrackWriter<T> implements LaneWriter {
  readonly #harts: T[] = [];
  readonly #threads = new Map<ThreadRef, T>();

  /** `tid`: see {@link tidOf}. Threads that begin anew have the numbers of others. */
  protected abstract added(name: string, tid: number, thread?: ThreadRef): T;

  hart({ number, name }: HartInfo): void {
    this.#harts[number] = this.added(name, number + 1);
  }

  thread(thread: ThreadRef): void {
    madeOnce(this.#threads, thread, () => this.added(threadText(thread), FIRST_THREAD + thread.key, thread));
  }

  protected trackOf({ hart, thread }: Track): T {
    return (thread ? this.#threads.get(thread) : this.#harts[hart]) as T;
  }

  /** Those of harts by their numbers, then those of threads. */
  protected tracks(): T[] {
    return [...new Set([...Object.values(this.#harts), ...this.#threads.values()])];
  }
}
