import { awaitPlace, waitText } from '../events/await-place.js';
import type {
  AnyBegin,
  AnyEnd,
  CallBegin,
  CallEnd,
  CallLost,
  Cancelled,
  ConsoleLine,
  Gap,
  GuestNanos,
  HartInfo,
  PollBegin,
  PollEnd,
  PollLost,
  Reset,
  RootRef,
  Stuck,
  ThreadRef,
  TraceEvent,
  TraceFacts,
  TraceInfo,
  TraceSink,
  Wake,
} from '../events/events.js';
import { isSuspended } from '../events/late-results.js';
import { isOnTrack, type OpenCall, OpenCalls } from '../events/open-calls.js';
import { Processes } from '../events/processes.js';
import { isOfTask, NewestRoots } from '../events/roots.js';
import type { LaneWriter, LifeEnd } from './lane-writer.js';
import { ServedCalls } from './served-calls.js';

/** What is known about a poll besides its begin: the lanes on which it is still open. */
interface LanePoll extends OpenCall {
  readonly begin: PollBegin;
  onRootLane: boolean;
}

interface LaneCall extends OpenCall {
  readonly begin: CallBegin;
}

interface Life {
  readonly root: RootRef;
  readonly polls: LanePoll[];
  /** The name of the open wait slice, and when it began. */
  waiting: string | undefined;
  since: GuestNanos;
  /** Its last poll's end, if that did not show whether it waits since. */
  unclear: PollEnd | undefined;
  over: boolean;
  /** The end of its last poll was not seen. */
  isLost: boolean;
  /** The number of the first wake since its last poll began. */
  wake: number | undefined;
}

const noWait = { waiting: undefined, since: 0 as GuestNanos, unclear: undefined };

/**
 * Turns events into slices that nest, for formats with timelines. Polls that are open when the trace ends stay open.
 * A root is forgotten when another one has its address: memory grows with these addresses, not with the number of
 * roots.
 */
export class Lanes implements TraceSink {
  readonly #writer: LaneWriter;
  /** By number. */
  readonly #harts: (true | undefined)[] = [];
  /** By key. */
  readonly #threads: (ThreadRef | undefined)[] = [];
  readonly #lives = new NewestRoots<Life>();
  /** Those that another one replaced while their polls were open, by the root's key. */
  readonly #replaced = new Map<number, Life>();
  readonly #open = new OpenCalls<LanePoll | LaneCall>();
  readonly #processes = new Processes();
  readonly #served = new ServedCalls();
  /** Wakes that cause polls. */
  #wakes = 0;
  /** Tasks that wait: for a wake, and for the poll that it causes. */
  readonly #tasks = { waiting: 0, runnable: 0 };

  constructor(writer: LaneWriter) {
    this.#writer = writer;
  }

  begin(info: TraceInfo): void {
    this.#writer.begin?.(info);
    for (const hart of info.harts) this.hart(hart);
  }

  hart(hart: HartInfo): void {
    if (this.#harts[hart.number]) return;
    this.#harts[hart.number] = true;
    this.#writer.hart?.(hart);
  }

  event(event: TraceEvent): void {
    if (ofHart(event) && !this.#harts[event.hart]) this.hart({ number: event.hart, name: `hart ${event.hart}` });
    const writer = this.#writer;
    const process = this.#processes.on(event);
    if (process) writer.process?.(process);
    switch (event.type) {
      case 'poll-begin':
        this.#pollBegin(event);
        break;
      case 'poll-end':
        this.#pollEnd(event);
        break;
      case 'poll-lost':
        this.#pollLost(event);
        break;
      case 'call-begin':
        this.#starts(event);
        this.#open.begin({ begin: event });
        writer.enter?.(event, undefined, undefined, this.#served.began(event));
        break;
      case 'call-end':
      case 'call-lost':
        this.#callEnd(event);
        break;
      case 'state':
        this.#life(event.root, event.time);
        writer.state?.(event);
        break;
      case 'derived-poll':
        this.#life(event.root, event.time);
        writer.derived?.(event);
        break;
      case 'stuck':
        if (event.root) this.#life(event.root, event.time);
        writer.stuck?.(event);
        break;
      case 'wake':
        this.#wake(event);
        break;
      case 'cancelled':
        this.#cancelled(event);
        break;
      case 'gap':
      case 'reset':
        if (event.type === 'reset') this.#resets(event.time);
        else this.#misses(event.from);
        this.#served.forget();
        (writer[event.type] as ((event: TraceEvent) => void) | undefined)?.call(writer, event);
        break;
      default:
        (writer[event.type] as ((event: TraceEvent) => void) | undefined)?.call(writer, event);
    }
  }

  flush(): void {
    this.#writer.flush?.();
  }

  end(facts?: TraceFacts): void {
    if (this.#processes.all.length > 0) this.#writer.processes?.(this.#processes.all);
    this.#writer.end?.(facts);
  }

  #pollBegin(event: PollBegin): void {
    const poll: LanePoll = { begin: event, onRootLane: true };
    this.#starts(event);
    this.#open.begin(poll);
    const life = this.#life(event.root, event.time);
    // A Future is polled on one track at a time: an older poll of it on another one is over, whatever comes later.
    for (let last = life.polls.at(-1); last && !isOnTrack(last.begin, event); last = life.polls.at(-1)) {
      life.polls.pop();
      last.onRootLane = false;
      this.#writer.rootLeave?.(last.begin, event.time, undefined);
    }
    this.#stopWaiting(life, event.time);
    this.#clear(life, event);
    life.isLost = false;
    life.polls.push(poll);
    const isOutermost = life.polls.length === 1;
    this.#writer.rootEnter?.(event);
    this.#writer.enter?.(event, isOutermost, isOutermost ? life.wake : undefined, this.#served.began(event));
    if (isOutermost) life.wake = undefined;
  }

  #pollEnd(event: PollEnd): void {
    this.#cutAfter(event.begin, event.time);
    const poll = pollOf(this.#open.end(event));
    const life = this.#life(poll?.begin.root ?? event.root, event.time);
    if (poll === undefined) {
      this.#orphan(event);
    } else {
      if (poll.onRootLane) this.#writer.rootLeave?.(poll.begin, event.time, event);
      this.#writer.leave?.(poll.begin, event.time, event);
      if (poll.onRootLane) life.polls.pop();
    }
    const root = life.root;
    if (life.polls.length > 0 || !isOfTask({ root, future: event.future, address: event.address })) return;
    if (event.result === 'pending') {
      this.#stopWaiting(life, event.time);
      const at = awaitPlace(event);
      life.waiting = waitText(at);
      life.since = event.time;
      this.#writer.waitBegin?.(event, life.waiting, at);
      this.#count(life, 1, event.time);
    } else if (event.result === 'ready' || event.result === 'panicked') {
      this.#endLife(life, event.time, event.result);
    } else life.unclear = event;
  }

  /** A poll shows what the end of the one before has left open. */
  #clear(life: Life, { future, address, state, time }: PollBegin): void {
    const { root, unclear } = life;
    if (unclear === undefined) return;
    life.unclear = undefined;
    if (future.key !== root.future.key || address !== root.address || !isSuspended(state)) return;
    const isSame = unclear.state?.name === state?.name;
    this.#writer.lateWait?.(isSame ? unclear : { ...unclear, state, chain: [] }, time);
  }

  #pollLost(event: PollLost): void {
    this.#cutAfter(event.begin, event.time);
    const poll = this.#open.end(event);
    if (poll !== undefined) {
      this.#lose(poll, event.time, 'lost');
    } else {
      this.#life(event.root, event.time);
      this.#orphan(event);
    }
  }

  #orphan(event: AnyEnd): void {
    this.#emitThread(event.thread);
    this.#writer.orphan?.(event);
  }

  #emitThread(thread: ThreadRef | undefined): void {
    if (!thread || this.#threads[thread.key] === thread) return;
    this.#threads[thread.key] = thread;
    this.#writer.thread?.(thread);
  }

  /** The first wake since a poll began causes the next one; others do nothing. */
  #wake(event: Wake): void {
    const { root } = event;
    const life = root && this.#lives.get(root);
    const causes = life?.root === root && life?.over === false && life.wake === undefined;
    const number = causes ? ++this.#wakes : undefined;
    const waits = causes && life?.waiting !== undefined;
    if (life && waits) this.#count(life, -1);
    if (life && causes) life.wake = number;
    this.#writer.wake?.(event, number);
    if (life && waits) this.#count(life, 1, event.time);
  }

  #cancelled(event: Cancelled): void {
    const life = event.root && this.#lives.get(event.root);
    this.#writer.cancelled?.(event);
    if (life?.root === event.root && life && isOfTask(event)) this.#endLife(life, event.time, 'dropped');
  }

  #callEnd(event: CallEnd | CallLost): void {
    this.#cutAfter(event.begin, event.time);
    const begin = this.#open.end(event)?.begin;
    if (begin === undefined) this.#orphan(event);
    else this.#writer.leave?.(begin, event.time, event.type === 'call-end' ? event : 'lost', this.#served.ended(begin));
  }

  /** A slice begins on its track. */
  #starts(begin: AnyBegin): void {
    const { thread, around, time } = begin;
    this.#emitThread(thread);
    if (around && isOnTrack(around, begin)) this.#cutAfter(around, time);
  }

  /** Ends slices inside another one to which something happens now: they are on another stack, or over. */
  #cutAfter(begin: AnyBegin | undefined, time: GuestNanos): void {
    if (!begin) return;
    for (const open of this.#open.takeAfter(begin)) this.#lose(open, time, 'cut');
  }

  #lose(open: LanePoll | LaneCall, time: GuestNanos, why: 'lost' | 'cut'): void {
    const poll = pollOf(open);
    if (poll?.onRootLane) this.#writer.rootLeave?.(poll.begin, time, undefined);
    this.#writer.leave?.(open.begin, time, why);
    if (!poll?.onRootLane) return;
    const life = this.#life(poll.begin.root, time);
    life.polls.pop();
    life.isLost = life.polls.length === 0;
  }

  #life(root: RootRef, time: GuestNanos): Life {
    const before = this.#lives.get(root);
    if (before?.root.key === root.key) return before;
    const known = this.#replaced.size === 0 ? undefined : this.#replaced.get(root.key);
    if (known !== undefined) return known;
    if (before !== undefined) {
      if (before.polls.length === 0) this.#endLife(before, time, before.isLost ? 'lost' : 'dropped');
      else this.#replaced.set(before.root.key, before);
    }
    const life: Life = { root, polls: [], ...noWait, over: false, isLost: false, wake: undefined };
    this.#lives.set(life);
    this.#writer.lifeBegin?.(root, time);
    return life;
  }

  /** All tasks are gone. */
  #resets(time: GuestNanos): void {
    for (const life of this.#lives.values()) this.#endLife(life, time, 'reset');
    this.#replaced.clear();
  }

  /** What came of a wait from then on is not known. */
  #misses(from: GuestNanos): void {
    for (const life of this.#lives.values()) {
      this.#stopWaiting(life, from, false);
      life.unclear = undefined;
      life.wake = undefined;
    }
  }

  #endLife(life: Life, time: GuestNanos, how: LifeEnd): void {
    this.#stopWaiting(life, time);
    life.unclear = undefined;
    if (!life.over && !life.root.isPart) this.#writer.lifeEnd?.(life.root, time, how);
    life.over = true;
  }

  #stopWaiting(life: Life, at: GuestNanos, isSeen = true): void {
    if (life.waiting === undefined) return;
    // A gap may begin before what was recorded, and times of a damaged trace go back.
    const time = Math.max(at, life.since) as GuestNanos;
    this.#writer.waitEnd?.(life.root, time, life.waiting, isSeen);
    life.waiting = undefined;
    this.#count(life, -1, time);
  }

  /** A task begins to wait, or no longer does. Without a time it is not said yet. */
  #count({ wake }: Life, change: 1 | -1, time?: GuestNanos): void {
    if (wake === undefined) this.#tasks.waiting += change;
    else this.#tasks.runnable += change;
    if (time !== undefined) this.#writer.tasks?.(time, this.#tasks.waiting, this.#tasks.runnable);
  }
}

/** `'hart' in event` takes as long as all else that is done here. */
function ofHart(event: TraceEvent): event is Exclude<TraceEvent, Gap | Reset | ConsoleLine | Stuck> {
  const { type } = event;
  return type !== 'gap' && type !== 'reset' && type !== 'console' && type !== 'stuck';
}

function pollOf(open: LanePoll | LaneCall | undefined): LanePoll | undefined {
  return open !== undefined && 'onRootLane' in open ? open : undefined;
}
