import { madeOnce } from '../../base/made-once.js';
import { type AwaitPlace, awaitPlace, isWaitNamed } from '../events/await-place.js';
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
import { calledOf, futureNames, type Named } from '../events/future-names.js';
import type { Chosen } from '../events/selection.js';
import { Filter } from '../events/sinks.js';
import { linkText, wakeSourceText } from '../events/text.js';
import type { LaneWriter } from './lane-writer.js';
import { Lanes } from './lanes.js';
import { TaskNames, waitingName } from './task-names.js';

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
  /** What the task is called that did. */
  readonly waker?: string | undefined;
  waits: number;
  total: number;
  max: number;
  /** Of the total: from the wake to the poll. */
  runnable: number;
}

/** How a wait ended where no wake did that. */
const marks = {
  unseen: '[no wake seen]',
  dropped: '[dropped]',
  reset: '[reset]',
  missed: '[not recorded]',
  open: '[still waiting at the end]',
} as const;
/** The innermost frame of the time between a wake and its poll. */
const runnable = '[woken, not polled yet]';

interface Woken {
  readonly wake: Wake;
  /** The task that woke, as it is called at that moment. */
  readonly by: Named | undefined;
}

/** A row whose names are not chosen yet. */
type Counted = Omit<WaitRow, 'task' | 'wokenBy' | 'waker' | 'wake'> & {
  readonly task: Named;
  readonly mark: string | undefined;
  readonly woken: Woken | undefined;
};

interface Wait {
  readonly end: PollEnd;
  readonly until: GuestNanos;
}

interface WantedWaits {
  /** A row for each way to wait, with the library's awaits. */
  readonly isFull?: boolean;
  /** Only the waits that it names. */
  readonly chosen?: Chosen | undefined;
}

/**
 * The off-CPU profile of a trace of polls: what tasks wait for, and who ends that. Each wait goes on to another sink as
 * samples that weigh its time. Their stack is the task, what it awaits, and who woke it. The time from the wake on is
 * in a frame of its own.
 *
 * A wait begins where a task's poll ends. It ends with the next poll, the task's drop, a gap, or the trace.
 */
export class OffCpu extends Filter {
  readonly #lanes: Lanes;
  readonly #wanted: WantedWaits;
  readonly #waiting = new Map<RootRef, PollEnd>();
  /** The first wake since a task's last poll began. */
  readonly #woken = new Map<RootRef, Woken>();
  readonly #names = new TaskNames();
  /** A wait that is over: the next call of the writer says why. */
  #over: Wait | undefined;
  readonly #frames = new Map<string, SampledFrame>();
  readonly #rows = new Map<string, Counted>();
  #last = 0 as GuestNanos;
  /** Wakes in the trace. */
  wakes = 0;

  constructor(sink: TraceSink, wanted: WantedWaits = {}) {
    super(sink);
    this.#wanted = wanted;
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
    const all = [...this.#rows.values()];
    const nameOf = futureNames(all.flatMap(({ task, woken }) => [task, woken?.by ?? []].flat()));
    return all.map(({ task, mark, woken, ...row }) => {
      const waker = woken?.by && nameOf(woken.by);
      return { ...row, task: nameOf(task), wokenBy: mark ?? sourceOf(woken, waker), wake: woken?.wake, waker };
    });
  }

  #writer(): LaneWriter {
    return {
      hart: (hart) => this.sink.hart(hart),
      wake: (event, number) => {
        if (event.root && number !== undefined) {
          this.#woken.set(event.root, { wake: event, by: event.by && this.#names.of(event.by) });
        }
      },
      waitBegin: (end) => {
        this.#waiting.set(end.root, end);
        this.#names.ended(end);
      },
      waitEnd: (root, until, _name, isSeen) => {
        const end = this.#waiting.get(root);
        this.#waiting.delete(root);
        if (end !== undefined) this.#over = { end, until };
        if (!isSeen) this.#settle(marks.missed);
      },
      lateWait: (end, until) => {
        this.#over = { end, until };
      },
      enter: (begin, isOutermost) => {
        if (begin.type !== 'poll-begin') return;
        this.#names.began(begin, isOutermost === true);
        if (!isOutermost) return;
        this.#settle(undefined);
        this.#woken.delete(begin.root);
      },
      lifeEnd: (root, _time, how) => {
        this.#settle(how === 'dropped' || how === 'reset' ? marks[how] : undefined);
        this.#woken.delete(root);
      },
    };
  }

  /** Passes the wait on that is over. */
  #settle(mark: string | undefined): void {
    if (this.#over === undefined) return;
    const { end, until } = this.#over;
    this.#over = undefined;
    if (this.#wanted.chosen && !isWaitNamed(end, this.#wanted.chosen.note)) return;
    const woken = mark === undefined ? this.#woken.get(end.root) : undefined;
    const wokenBy = mark ?? sourceOf(woken, woken?.by && calledOf(woken.by));
    const wokenAt = woken ? Math.min(Math.max(woken.wake.time, end.time), until) : until;
    this.#count(end, wokenBy, woken, until - end.time, until - wokenAt);
    const stack = [this.#frame(woken ? `woken by ${wokenBy}` : wokenBy), ...this.#awaits(end)];
    this.#emit(end, end.time, wokenAt, stack);
    this.#emit(end, wokenAt as GuestNanos, until, [this.#frame(runnable), ...stack]);
  }

  #emit({ hart }: PollEnd, time: GuestNanos, until: number, stack: readonly SampledFrame[]): void {
    if (until > time) this.sink.event({ type: 'sample', time, hart, stack, periodNs: until - time, isWait: true });
  }

  #count(end: PollEnd, wokenBy: string, woken: Woken | undefined, time: number, runnable: number): void {
    const task = waitingName(end);
    const at = awaitPlace(end);
    const whole = this.#wanted.isFull ? wholeAwait(end) : undefined;
    const place = whole ?? `${at?.file}\n${at?.line}\n${at?.inside}`;
    const key = [task.future, task.instance, place, wokenBy, woken?.by?.instance].join('\n');
    const mark = woken ? undefined : wokenBy;
    const counts = { waits: 0, total: 0, max: 0, runnable: 0 };
    const row = madeOnce(this.#rows, key, () => ({ task, at, whole, mark, woken, ...counts }));
    row.waits++;
    row.total += time;
    row.max = Math.max(row.max, time);
    row.runnable += runnable;
  }

  /** What the task awaits, the innermost first. */
  #awaits({ future, state, chain }: PollEnd): SampledFrame[] {
    const own = { future: undefined, typeName: calledOf(future), address: undefined, state };
    return [own, ...chain].map((link) => this.#frame(linkText(link), link.state)).reverse();
  }

  #frame(name: string, at?: StateRef): SampledFrame {
    const frame = { name, instance: name, address: undefined, file: at?.file, line: at?.line };
    return madeOnce(this.#frames, name, () => frame);
  }
}

function sourceOf(woken: Woken | undefined, waker: string | undefined): string {
  return woken ? wakeSourceText(woken.wake, undefined, waker) : marks.unseen;
}
