import { madeOnce } from '../../base/made-once.js';
import { type AwaitPlace, awaitPlace } from '../events/await-place.js';
import { wholeAwait } from '../events/await-ways.js';
import {
  type GuestNanos,
  type HartInfo,
  type PollEnd,
  type RootRef,
  type SampledFrame,
  type StateRef,
  type TraceEvent,
  type TraceFacts,
  type TraceInfo,
  type TraceSink,
  timeOf,
  type Wake,
} from '../events/events.js';
import { Filter } from '../events/sinks.js';
import { linkText, wakeSourceText } from '../events/text.js';
import type { LaneWriter } from './lane-writer.js';
import { Lanes } from './lanes.js';

/** Waits at one await that the same code ended. Times are nanoseconds. */
export interface WaitRow {
  /** The Future of the task. */
  readonly task: string;
  /** The innermost await of its own code. */
  readonly at: AwaitPlace | undefined;
  /** All that it waits for, the outermost first, where that was asked for. */
  readonly whole?: string | undefined;
  /** `no task in labkern::exec::timer_tick at src/exec.rs:118`, or a mark: `[no wake seen]`. */
  readonly wokenBy: string;
  /** One of those that did; undefined for a mark. */
  readonly wake: Wake | undefined;
  waits: number;
  total: number;
  max: number;
  /** Of the total: from the wake to the poll. */
  runnable: number;
}

/** How a wait ended where no wake did that. */
const marks = { unseen: '[no wake seen]', dropped: '[dropped]', open: '[still waiting at the end]' } as const;
/** The innermost frame of the time between a wake and its poll. */
const runnable = '[woken, not polled yet]';

interface Wait {
  readonly end: PollEnd;
  readonly until: GuestNanos;
}

/**
 * The off-CPU profile of a trace of polls: what tasks wait for, and who ends that. Each wait goes on to another sink as
 * samples that weigh its time. Their stack is the task, what it awaits, and who woke it. The time from the wake on is
 * in a frame of its own.
 *
 * A wait begins where a task's poll ends. It ends with the next poll, the task's drop, or the trace.
 */
export class OffCpu extends Filter {
  readonly #lanes: Lanes;
  readonly #isFull: boolean;
  readonly #waiting = new Map<RootRef, PollEnd>();
  /** The first wake since a task's last poll began. */
  readonly #woken = new Map<RootRef, Wake>();
  /** A wait that is over: the next call of the writer says why. */
  #over: Wait | undefined;
  readonly #frames = new Map<string, SampledFrame>();
  readonly #rows = new Map<string, WaitRow>();
  #last = 0 as GuestNanos;
  /** Wakes in the trace. */
  wakes = 0;

  /** `isFull`: a row for each way to wait, with the library's awaits. */
  constructor(sink: TraceSink, isFull = false) {
    super(sink);
    this.#isFull = isFull;
    this.#lanes = new Lanes(this.#writer());
  }

  override begin(info: TraceInfo): void {
    this.sink.begin(info);
    this.#lanes.begin(info);
  }

  override hart(hart: HartInfo): void {
    this.#lanes.hart(hart);
  }

  event(event: TraceEvent): void {
    this.#last = Math.max(this.#last, timeOf(event)) as GuestNanos;
    if (event.type === 'wake') this.wakes++;
    this.#lanes.event(event);
    this.#settle(undefined);
  }

  override end(facts?: TraceFacts): void {
    for (const [root, end] of this.#waiting) {
      this.#over = { end, until: this.#last };
      this.#settle(this.#woken.has(root) ? undefined : marks.open);
    }
    this.#waiting.clear();
    this.sink.end(facts);
  }

  /** In no particular order. */
  rows(): WaitRow[] {
    return [...this.#rows.values()];
  }

  #writer(): LaneWriter {
    return {
      hart: (hart) => this.sink.hart(hart),
      wake: (event, number) => {
        if (event.root && number !== undefined) this.#woken.set(event.root, event);
      },
      waitBegin: (end) => this.#waiting.set(end.root, end),
      waitEnd: (root, until) => {
        const end = this.#waiting.get(root);
        this.#waiting.delete(root);
        if (end !== undefined) this.#over = { end, until };
      },
      lateWait: (end, until) => {
        this.#over = { end, until };
      },
      enter: (begin, isOutermost) => {
        if (!isOutermost || begin.type !== 'poll-begin') return;
        this.#settle(undefined);
        this.#woken.delete(begin.root);
      },
      lifeEnd: (root, _time, how) => {
        this.#settle(how === 'dropped' ? marks.dropped : undefined);
        this.#woken.delete(root);
      },
    };
  }

  /** Passes the wait on that is over. */
  #settle(mark: string | undefined): void {
    if (this.#over === undefined) return;
    const { end, until } = this.#over;
    this.#over = undefined;
    const wake = this.#woken.get(end.root);
    const wokenBy = mark ?? (wake ? wakeSourceText(wake) : marks.unseen);
    const wokenAt = mark === undefined && wake ? Math.min(Math.max(wake.time, end.time), until) : until;
    this.#count(end, { wokenBy, wake: mark === undefined ? wake : undefined }, until - end.time, until - wokenAt);
    const stack = [this.#frame(mark ?? (wake ? `woken by ${wokenBy}` : wokenBy)), ...this.#awaits(end)];
    this.#emit(end, end.time, wokenAt, stack);
    this.#emit(end, wokenAt as GuestNanos, until, [this.#frame(runnable), ...stack]);
  }

  #emit({ hart }: PollEnd, time: GuestNanos, until: number, stack: readonly SampledFrame[]): void {
    if (until > time) this.sink.event({ type: 'sample', time, hart, stack, periodNs: until - time, isWait: true });
  }

  #count(end: PollEnd, source: Pick<WaitRow, 'wokenBy' | 'wake'>, time: number, runnable: number): void {
    const task = nameOf(end);
    const at = awaitPlace(end);
    const whole = this.#isFull ? wholeAwait(end) : undefined;
    const key = `${task}\n${whole ?? `${at?.file}\n${at?.line}\n${at?.inside}`}\n${source.wokenBy}`;
    const counts = { waits: 0, total: 0, max: 0, runnable: 0 };
    const row = madeOnce(this.#rows, key, () => ({ task, at, whole, ...source, ...counts }));
    row.waits++;
    row.total += time;
    row.max = Math.max(row.max, time);
    row.runnable += runnable;
  }

  /** What the task awaits, the innermost first. */
  #awaits({ future, state, chain }: PollEnd): SampledFrame[] {
    const own = { future, typeName: future.future, address: undefined, state };
    return [own, ...chain].map((link) => this.#frame(linkText(link), link.state)).reverse();
  }

  #frame(name: string, at?: StateRef): SampledFrame {
    const frame = { name, instance: name, address: undefined, file: at?.file, line: at?.line };
    return madeOnce(this.#frames, name, () => frame);
  }
}

/**
 * The outermost Future of the program's own code; without one the outermost that shows where it waits: what a library
 * wraps around a task has no name of the program's.
 */
function nameOf(end: PollEnd): string {
  const { root, future, state, chain } = end;
  const outermost = awaitPlace(end)?.outermost;
  if (state !== undefined && outermost !== undefined && outermost !== future.future) return outermost;
  const own = state === undefined ? chain.find((link) => link.state?.file !== undefined)?.future : undefined;
  return (own ?? root.future).future;
}
