import { type Addr, hex } from '../../../base/addr.js';
import { type AwaitPlace, awaitPlace, awaitText } from '../../events/await-place.js';
import { chainText, wholeAwait } from '../../events/await-ways.js';
import type {
  AnyBegin,
  AnyEnd,
  CallEnd,
  Cancelled,
  ConsoleLine,
  DerivedPoll,
  Gap,
  GuestNanos,
  PlaceHit,
  PollBegin,
  PollEnd,
  Reset,
  RootRef,
  StateChange,
  Stuck,
  ThreadRef,
  TraceInfo,
  Wake,
  WatchHit,
} from '../../events/events.js';
import { calledOf } from '../../events/future-names.js';
import { type Process, type ProcessRef, processName, processText } from '../../events/processes.js';
import {
  aboutText,
  accessText,
  actorText,
  argumentsText,
  cancelText,
  gapText,
  placeHitText,
  resetText,
  rootText,
  stackText,
  stateText,
  stuckText,
  wakeText,
} from '../../events/text.js';
import { FIRST_THREAD, type LifeEnd, TrackWriter } from '../lane-writer.js';
import type { Served } from '../served-calls.js';
import type { Blocks, Detail, Slice } from './blocks.js';
import type { WhatKind } from './columns.js';
import type { HtmlTables } from './tables.js';

/** What a slice has that is on no lane. */
const nothing = { lane: 0, depth: 0, task: 0, taskDepth: 0, time: 0, isOpen: 0, wake: 0 };

const lost: Detail = ['result', 'lost'];

/** A call or poll that is open. */
interface Open {
  readonly begin: AnyBegin;
  lane: number;
  depth: number;
  task: number;
  taskDepth: number;
  wake: number;
  /** When its end on the lane of its task was missed: another hart polls the task. Its own slice may go on. */
  leftTask: number | undefined;
}

interface Lane {
  readonly number: number;
  /** The innermost last. */
  readonly open: Open[];
}

interface TaskLane {
  readonly number: number;
  /** Its name has the task's number. */
  isNumbered: boolean;
  /** Polls that are open on it. */
  depth: number;
}

interface Waiting {
  readonly end: PollEnd;
  readonly at: AwaitPlace | undefined;
}

/** Makes a record of every slice when it ends, and of everything that happens in a moment. */
export class HtmlLanes extends TrackWriter<Lane> {
  readonly #out: Blocks;
  readonly #numberOf: (root: RootRef) => number;
  readonly #tasks = new WeakMap<RootRef, TaskLane>();
  /** By the task's number. */
  readonly #lanesOfTasks: number[] = [];
  /** A poll that is on its task's lane and not yet on its hart's. */
  #entering: Open | undefined;
  readonly #waiting = new Map<RootRef, Waiting>();
  readonly #processes = new Map<Addr, { readonly number: number; readonly lane: number }>();
  /** Those that lanes have at the end, by their numbers. */
  readonly names: Record<number, string> = {};
  #last = 0;

  /** `numberOf`: the number of a task in the table. */
  constructor(out: Blocks, numberOf: (root: RootRef) => number) {
    super();
    this.#out = out;
    this.#numberOf = numberOf;
  }

  begin(info: TraceInfo): void {
    this.#out.begin(info);
    this.#out.lane({ kind: 'machine', name: 'machine' });
  }

  protected added(name: string, tid: number, thread?: ThreadRef): Lane {
    const process = this.#processOf(thread?.space);
    return { number: this.#out.lane({ kind: tid < FIRST_THREAD ? 'hart' : 'thread', name, process }), open: [] };
  }

  process({ number, space }: ProcessRef): void {
    const lane = this.#out.lane({ kind: 'process', name: processText(space), process: number });
    this.#processes.set(space, { number, lane });
  }

  processes(all: readonly Process[]): void {
    for (const process of all) {
      const { first, last, space, programs } = process;
      const { lane = 0 } = this.#processes.get(space) ?? {};
      const name = processName(process);
      this.names[lane] = name;
      const what = this.#out.what(`process ${lane}`, () => ({ kind: 'process', name }));
      const detail = ['page tables at', hex(space), 'programs', [...programs].join(', ')];
      this.#add(what, { ...nothing, end: last, time: last - first, lane: lane + 1 }, detail);
    }
  }

  #processOf(space: Addr | undefined): number | undefined {
    return space === undefined ? undefined : this.#processes.get(space)?.number;
  }

  lifeBegin(root: RootRef): void {
    const process = this.#processOf(root.space);
    const number = this.#out.lane({ kind: 'task', name: this.#taskName(root), process });
    const lane = { number, isNumbered: false, depth: 0 };
    this.#tasks.set(root, lane);
    this.#numbered(root, lane);
  }

  #taskName(root: RootRef): string {
    const number = this.#numberOf(root);
    const about = root.about ? ` (${aboutText(root.about)})` : '';
    return `${number > 0 ? `${number}: ` : ''}${rootText(root)}${about}`;
  }

  /** A task has a number from its first poll on, which may not be the first that is seen of it. */
  #numbered(root: RootRef, lane: TaskLane): void {
    const number = this.#numberOf(root);
    if (number === 0) return;
    lane.isNumbered = true;
    this.#lanesOfTasks[number] = lane.number;
  }

  lifeEnd(root: RootRef, time: GuestNanos, how: LifeEnd): void {
    this.#mark('end', how, { end: time, task: this.#taskOf(root) });
  }

  rootEnter(begin: PollBegin): void {
    const { root } = begin;
    const lane = this.#tasks.get(root);
    if (lane === undefined) return;
    if (!lane.isNumbered && !root.isPart) {
      this.#numbered(root, lane);
      this.names[lane.number] = this.#taskName(root);
    }
    const taskDepth = ++lane.depth;
    this.#entering = { begin, lane: 0, depth: 0, task: lane.number + 1, taskDepth, wake: 0, leftTask: undefined };
  }

  rootLeave(begin: PollBegin, time: GuestNanos, end: PollEnd | undefined): void {
    const lane = this.#tasks.get(begin.root);
    if (lane) lane.depth--;
    if (end !== undefined) return;
    const open = this.trackOf(begin).open.findLast((each) => each.begin === begin);
    if (open) open.leftTask = time;
  }

  enter(begin: AnyBegin, _isOutermost?: boolean, wake = 0, served?: Served): void {
    const lane = this.trackOf(begin);
    this.#last = Math.max(this.#last, begin.time);
    const open = this.#entering ?? { begin, lane: 0, depth: 0, task: 0, taskDepth: 0, wake: 0, leftTask: undefined };
    this.#entering = undefined;
    open.lane = lane.number + 1;
    open.depth = lane.open.length;
    const serves = served?.call ?? served?.by;
    open.wake = wake === 0 && serves !== undefined ? 2 * serves - 1 : 2 * wake;
    lane.open.push(open);
  }

  leave(begin: AnyBegin, time: GuestNanos, how: PollEnd | CallEnd | 'lost' | 'cut'): void {
    const open = this.trackOf(begin).open.pop();
    if (open === undefined) return;
    const isLost = typeof how === 'string';
    this.#slice(open, time, isLost ? 1 : 0, isLost ? lost : this.#after(how));
  }

  orphan(event: AnyEnd): void {
    const name = 'function' in event ? event.function.name : `poll ${calledOf(event.future)}`;
    const task = 'root' in event ? this.#taskOf(event.root) : 0;
    const at = { end: event.time, lane: this.trackOf(event).number + 1, task };
    this.#mark('mark', 'end of what began unseen', at, ['of', name, ...('result' in event ? this.#after(event) : [])]);
  }

  waitBegin(end: PollEnd, _name: string, at: AwaitPlace | undefined): void {
    this.#waiting.set(end.root, { end, at });
  }

  waitEnd(root: RootRef, time: GuestNanos, _name: string, isSeen: boolean): void {
    const waiting = this.#waiting.get(root);
    if (waiting) this.#wait(waiting, time, isSeen ? 0 : 1);
    this.#waiting.delete(root);
  }

  lateWait(end: PollEnd, until: GuestNanos): void {
    this.#wait({ end, at: awaitPlace(end) }, until, 0);
  }

  state(event: StateChange): void {
    const { time, future, from, to, root } = event;
    const detail = ['future', future.future, 'state before', from && stateText(from), 'state', to && stateText(to)];
    this.#mark('mark', 'state changed', { end: time, task: this.#taskOf(root) }, detail);
  }

  derived(event: DerivedPoll): void {
    const { time, future, result, state, root } = event;
    const detail = ['future', future.future, 'result', result, 'state', state && stateText(state)];
    this.#mark('mark', 'poll that was inlined', { end: time, task: this.#taskOf(root) }, detail);
  }

  watch(event: WatchHit): void {
    const detail = ['access', accessText(event), 'by', actorText(event), 'inlined', stackText(event.inlined)];
    this.#mark('mark', event.watch.name, this.#onHart(event), detail);
  }

  place(event: PlaceHit): void {
    this.#mark('mark', event.place.name, this.#onHart(event), ['place', placeHitText(event)]);
  }

  wake(event: Wake, number: number | undefined): void {
    const at = { ...this.#onHart(event), task: event.root ? this.#taskOf(event.root) : 0, wake: 2 * (number ?? 0) };
    this.#mark('wake', 'wake', at, ['what', wakeText(event)]);
  }

  cancelled(event: Cancelled): void {
    const at = { ...this.#onHart(event), task: event.root ? this.#taskOf(event.root) : 0 };
    this.#mark('mark', 'dropped before it was ready', at, ['what', cancelText(event)]);
  }

  stuck(event: Stuck): void {
    const task = event.root ? this.#taskOf(event.root) : 0;
    this.#mark('mark', event.why, { end: event.time, task, lane: task === 0 ? 1 : 0 }, ['what', stuckText(event)]);
  }

  gap(event: Gap): void {
    const name = gapText(event);
    const what = this.#out.what(`gap ${name}`, () => ({ kind: 'gap', name }));
    this.#add(what, { ...nothing, end: event.to, time: event.to - event.from, lane: 1 }, []);
  }

  reset({ time }: Reset): void {
    this.#mark('mark', resetText, { end: time, lane: 1 });
  }

  console({ time, text }: ConsoleLine): void {
    this.#mark('console', 'console', { end: time, lane: 1 }, ['line', text]);
  }

  /** What is open stays open. */
  end(): void {
    for (const { open } of this.tracks())
      for (const each of open.splice(0).reverse()) this.#slice(each, this.#last, 1, ['result', 'open']);
    for (const waiting of this.#waiting.values()) this.#wait(waiting, this.#last, 1);
    this.#waiting.clear();
  }

  /** Where each was seen. */
  findings(all: HtmlTables['findings']): void {
    for (const { kind, task, future, text, times_ns } of all) {
      const lane = this.#lanesOfTasks[task];
      const at = lane === undefined ? { lane: 1 } : { task: lane + 1 };
      for (const time of times_ns) this.#mark('finding', kind, { end: time, ...at }, ['future', future, 'what', text]);
    }
  }

  #after(end: PollEnd | CallEnd): Detail {
    if (end.type === 'call-end') return ['result', end.result];
    const { result, state } = end;
    return ['result', result, 'state', state && stateText(state), 'awaits', chainText(end)];
  }

  #slice(open: Open, end: number, isOpen: number, after: Detail): void {
    const { leftTask } = open;
    if (leftTask !== undefined && leftTask !== end) {
      this.#slice({ ...open, leftTask: undefined, lane: 0 }, leftTask, 1, lost);
      this.#slice({ ...open, leftTask: undefined, taskDepth: 0 }, end, isOpen, after);
      return;
    }
    const { begin, lane, depth, task, taskDepth, wake } = open;
    const at = { lane, depth, task, taskDepth, end, time: end - begin.time, isOpen, wake };
    if (begin.type === 'call-begin') {
      const { function: fn, arguments: values } = begin;
      const what = this.#out.what(fn, () => ({ ...fn, kind: 'call' }));
      this.#add(what, at, [...after, 'arguments', argumentsText(values), 'hart', this.#hartOf(begin)]);
      return;
    }
    const { future, state, stack } = begin;
    const what = this.#out.what(future, () => ({ ...future, name: calledOf(future), kind: 'poll' }));
    const before = ['state before', state && stateText(state), 'stack', stack && stackText(stack)];
    this.#add(what, at, [...after, ...before, 'hart', this.#hartOf(begin)]);
  }

  /** Of a slice on a thread's lane. */
  #hartOf({ thread, hart }: AnyBegin): string | undefined {
    return thread && String(hart);
  }

  #wait({ end, at }: Waiting, time: number, isOpen: number): void {
    const name = (at && awaitText(at)) ?? 'waiting';
    const what = this.#out.what(`wait ${name}`, () => ({ kind: 'wait', name, file: at?.file, line: at?.line }));
    const slice = { ...nothing, end: time, time: time - end.time, isOpen, task: this.#taskOf(end.root), taskDepth: 1 };
    this.#add(what, slice, ['awaits', wholeAwait(end)]);
  }

  #mark(kind: WhatKind, name: string, at: Pick<Slice, 'end'> & Partial<Slice>, detail: Detail = []): void {
    const what = this.#out.what(`${kind} ${name}`, () => ({ kind, name }));
    this.#add(what, { ...nothing, ...at }, detail);
  }

  #add(what: number, slice: Slice, detail: Detail): void {
    this.#last = Math.max(this.#last, slice.end);
    this.#out.add(what, slice, detail);
  }

  #onHart({ hart, time }: { readonly hart: number; readonly time: number }): Pick<Slice, 'end' | 'lane'> {
    return { end: time, lane: this.trackOf({ hart }).number + 1 };
  }

  #taskOf(root: RootRef): number {
    return (this.#tasks.get(root)?.number ?? -1) + 1;
  }
}
