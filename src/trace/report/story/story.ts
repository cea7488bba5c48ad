import { awaitPlace, waitText } from '../../events/await-place.js';
import type {
  AnyBegin,
  AnyEnd,
  ArgumentValue,
  CallBegin,
  GuestNanos,
  PollBegin,
  PollEnd,
  RootRef,
  TraceEvent,
  Wake,
} from '../../events/events.js';
import { calledOf } from '../../events/future-names.js';
import { isBegin, isEnd } from '../../events/open-calls.js';
import { spaceOf } from '../../events/processes.js';
import type { Selection } from '../../events/selection.js';
import { Fold } from '../../events/sinks.js';
import { argumentsText, placeHitText, rootText, stateText, wakeSourceText } from '../../events/text.js';
import { type Carrier, HartStates } from './carrier.js';
import type { StoryKind, StoryNode, StoryWait } from './node.js';
import { isThread, lifeOf, type Subject, Subjects } from './subjects.js';
import { awaited, LockHolders, sourceOf, wakesThread, wokeNothing } from './wakers.js';

/** More would not be read, and a trace may have millions. */
const mostNodes = 100_000;
/** What is nested deeper is left out. */
const mostDeep = 500;

type WaitNode = StoryNode & { readonly wait: StoryWait; waker?: CallBegin };

/** A hart that runs something of the story: what is open there, the outermost first. */
type Lane = StoryNode[];

/** All that happened for one call, or for one Future, on whatever hart. */
export class Story extends Fold {
  readonly #subjects: Subjects;
  readonly #number: number;
  readonly #harts = new HartStates();
  readonly #locks = new LockHolders();
  readonly #open = new Map<AnyBegin, { readonly node: StoryNode; readonly lane: Lane }>();
  /** Harts that poll a task which the subject has woken, while it waits itself. */
  readonly #served = new Map<number, Lane>();
  readonly #woken = new Set<RootRef>();
  #followed: Followed | undefined;
  #nodes = 0;
  leftOut = 0;

  /** `number`: which of what is wanted, see `Subject`. */
  constructor(wanted: Selection, number: number) {
    super();
    this.#subjects = new Subjects(wanted);
    this.#number = number;
  }

  /** Undefined before it has begun. */
  get followed(): Omit<Followed, 'lane'> | undefined {
    return this.#followed;
  }

  event(event: TraceEvent): void {
    if (this.#followed?.isOver) return;
    const { began, ended } = this.#subjects.on(event);
    if (began?.number === this.#number) this.#begins(began);
    else this.#event(event);
    this.#harts.on(event);
    if (ended && ended.subject === this.#followed?.subject) this.#over(event, ended.isWhole);
    if (event.type === 'reset') this.#over(event, false);
    this.#follow(event);
  }

  /** Who holds locks is known only of what came before, too. */
  #follow(event: TraceEvent): void {
    if (event.type === 'call-end') this.#locks.taken(event);
    else if (event.type === 'place') this.#locks.released(event);
    else if (event.type === 'reset' || event.type === 'gap') this.#locks.forget();
  }

  #begins(subject: Subject): void {
    const { carrier, poll } = this.#harts.carrierOf(subject);
    const { begin } = subject;
    const root = subjectNode(begin);
    this.#followed = {
      subject,
      root,
      carrier,
      poll,
      on: begin.hart,
      lane: [root],
      ...{ wait: undefined, taskPoll: undefined },
      given: [],
      others: 0,
      isOver: false,
    };
    if (begin.type === 'poll-begin') this.#enters(this.#followed, begin);
    else this.#open.set(begin, { node: root, lane: this.#followed.lane });
  }

  #event(event: TraceEvent): void {
    const followed = this.#followed;
    if (!followed) return;
    if ((isBegin(event) || isEnd(event)) && isThread(event)) this.#switches(followed, event);
    else if (isBegin(event)) this.#enters(followed, event);
    else if (isEnd(event)) this.#leaves(followed, event);
    else if (event.type === 'wake') this.#wakes(followed, event);
    else if (event.type === 'place' && event.place.lock === undefined)
      this.#instant(this.#laneOf(followed, event.hart), event, 'place', placeHitText(event));
  }

  #switches(followed: Followed, event: AnyBegin | AnyEnd): void {
    const { carrier, wait } = followed;
    if (carrier.kind !== 'thread' || event.thread || !('function' in event)) return;
    const isBeginning = isBegin(event);
    if (event.function === carrier.thread) {
      if (isBeginning) this.#resumes(followed, event);
      else this.#pauses(followed, event, isInterrupted(followed.lane) ? 'preempted' : 'off the hart');
    } else if (isBeginning && wait && wait.hart === event.hart) wait.wait.next ??= event.function.name;
  }

  #enters(followed: Followed, begin: AnyBegin): void {
    if (begin.type === 'call-begin') this.#mayWake(followed, begin);
    if (begin.type === 'poll-begin') this.#polls(followed, begin);
    const lane = this.#laneOf(followed, begin.hart);
    if (!lane) return;
    if (isOfOther(followed, begin)) {
      followed.others++;
      return;
    }
    const held = begin.type === 'call-begin' ? this.#locks.of(begin) : undefined;
    const node = this.#add(lane, nodeOf(begin, held));
    if (!node) return;
    lane.push(node);
    this.#open.set(begin, { node, lane });
  }

  /** A poll of the subject's task goes on with it; one of a task that it has woken serves it. */
  #polls(followed: Followed, begin: PollBegin): void {
    const { carrier, wait } = followed;
    const isOwn =
      (carrier.kind === 'task' && begin.root === carrier.root) ||
      (carrier.kind === 'future' && lifeOf(begin) === carrier.life);
    if (carrier.kind === 'future' && begin.root === carrier.root && this.#harts.isOutermost(begin))
      followed.taskPoll = { begin, wake: undefined };
    if (isOwn && followed.on === undefined) {
      followed.poll = begin;
      this.#resumes(followed, begin);
    } else if (wait && this.#woken.has(begin.root) && !this.#served.has(begin.hart)) {
      this.#served.set(begin.hart, [wait]);
    }
  }

  /** Nothing but functions' names and arguments says who wakes a thread. */
  #mayWake({ carrier, wait, given }: Followed, begin: CallBegin): void {
    if (!wait || carrier.kind !== 'thread' || wait.wait.woken !== undefined) return;
    if (!wakesThread(begin, carrier.thread, given)) return;
    const inside = this.#harts.insideOf(begin.hart);
    wait.wait.woken = begin.time;
    wait.wait.wokenBy = `${begin.function.name}${inside === undefined ? '' : ` ${inside}`}`;
    wait.waker = begin;
  }

  #leaves(followed: Followed, end: AnyEnd): void {
    const { begin } = end;
    const { wait } = followed;
    if (wait && wait.waker === begin && end.type === 'call-end' && wokeNothing(end))
      Object.assign(wait.wait, { woken: undefined, wokenBy: undefined });
    const open = begin && this.#open.get(begin);
    if (begin && open) {
      const { node, lane } = open;
      this.#open.delete(begin);
      if (lane === followed.lane && end.type === 'call-end') this.#renamed(followed, end.hart);
      const at = lane.lastIndexOf(node);
      // What it is around is over too.
      if (at > 0) lane.splice(at);
      if (end.type === 'call-end' || end.type === 'poll-end') {
        node.took = end.time - node.began;
        node.result = end.result;
      }
      if (this.#served.get(end.hart)?.length === 1) this.#served.delete(end.hart);
    }
    if (begin !== undefined && begin === followed.taskPoll?.begin) this.#polledWithout(followed, begin);
    if (begin === undefined || begin !== followed.poll) return;
    if (end.type === 'poll-lost' || (end.type === 'poll-end' && end.result !== 'ready'))
      this.#pauses(followed, end, end.type === 'poll-end' ? waitName(end) : 'waits');
  }

  /** Its task was polled, and it was not: what had woken the task was for another Future in it. */
  #polledWithout({ wait, taskPoll }: Followed, begin: AnyBegin): void {
    if (!wait || wait.began >= begin.time) return;
    const { time: woken, text: wokenBy } = taskPoll?.wake ?? {};
    Object.assign(wait.wait, { woken, wokenBy });
  }

  /** What it has called returns, although it has no hart: its thread is called otherwise since an exec. */
  #renamed(followed: Followed, hart: number): void {
    const now =
      followed.on === undefined && followed.carrier.kind === 'thread' ? this.#harts.threadOf(hart) : undefined;
    if (!now) return;
    followed.carrier = { kind: 'thread', thread: now.function };
    this.#resumes(followed, now);
  }

  #wakes(followed: Followed, wake: Wake): void {
    const { carrier, wait } = followed;
    const own = carrier.kind === 'task' || carrier.kind === 'future' ? carrier.root : undefined;
    if (wait && own !== undefined && wake.root === own) {
      const text = carrier.kind === 'future' ? sourceOf(followed.subject, wake) : wakeSourceText(wake);
      wait.wait.woken ??= wake.time;
      wait.wait.wokenBy ??= text;
      if (followed.taskPoll) followed.taskPoll.wake ??= { time: wake.time, text };
      return;
    }
    const lane = this.#laneOf(followed, wake.hart);
    if (lane === undefined || wake.root === own) return;
    if (wake.root !== undefined) this.#woken.add(wake.root);
    this.#instant(lane, wake, 'wake', `wakes ${wake.root === undefined ? 'a task' : rootText(wake.root)}`);
  }

  #instant(
    lane: Lane | undefined,
    { hart, time }: { readonly hart: number; readonly time: GuestNanos },
    kind: StoryKind,
    name: string,
  ): void {
    if (lane) this.#add(lane, { kind, name, ...began(hart, time) });
  }

  #pauses(followed: Followed, { time, hart }: AnyEnd, name: string): void {
    const wait: WaitNode = {
      ...{ kind: 'wait', name, ...began(hart, time) },
      wait: { next: undefined, wokenBy: undefined, woken: undefined, back: undefined },
    };
    const calls = [...this.#open].flatMap(([begin, { lane }]) => (lane === followed.lane ? begin : []));
    followed.given = awaited(calls.filter((begin) => begin.type === 'call-begin'));
    // Waits are few, and sums need all of them.
    (followed.lane.at(-1) ?? followed.root).children.push(wait);
    followed.wait = wait;
    followed.on = undefined;
  }

  #resumes(followed: Followed, { time, hart }: AnyBegin): void {
    const { wait } = followed;
    if (wait) {
      wait.took = time - wait.began;
      wait.wait.back = hart;
    }
    followed.wait = undefined;
    followed.on = hart;
    this.#served.clear();
  }

  #over(event: TraceEvent, isWhole: boolean): void {
    const followed = this.#followed;
    if (!followed || event.type === 'gap') return;
    followed.isOver = true;
    if (isWhole) followed.root.took = event.time - followed.root.began;
    if (followed.wait && isWhole) followed.wait.took = event.time - followed.wait.began;
    if (event.type === 'cancelled') followed.root.result = 'dropped';
    if (event.type === 'call-lost') followed.root.result = 'lost';
    if (event.type === 'poll-end') followed.root.result = event.result;
  }

  #laneOf(followed: Followed, hart: number): Lane | undefined {
    return followed.on === hart ? followed.lane : this.#served.get(hart);
  }

  #add(lane: Lane, node: StoryNode): StoryNode | undefined {
    if (this.#nodes >= mostNodes || lane.length >= mostDeep) {
      this.leftOut++;
      return undefined;
    }
    this.#nodes++;
    lane.at(-1)?.children.push(node);
    return node;
  }
}

interface Followed {
  readonly subject: Subject;
  readonly root: StoryNode;
  carrier: Carrier;
  /** The poll that goes on with it, of a task or a Future. */
  poll: AnyBegin | undefined;
  /** Of a Future: the newest outermost poll of its task, and the first wake of that since. */
  taskPoll:
    | { readonly begin: PollBegin; wake: { readonly time: GuestNanos; readonly text: string } | undefined }
    | undefined;
  /** The hart that it has; undefined while it has none. */
  on: number | undefined;
  readonly lane: Lane;
  wait: WaitNode | undefined;
  /** What a thread waits with. */
  given: readonly ArgumentValue[];
  /** Calls of other processes on its hart meanwhile. */
  others: number;
  isOver: boolean;
}

/** Of another program on the same hart, which nothing but context switches would say to have another turn. */
function isOfOther({ carrier, subject }: Followed, begin: AnyBegin): boolean {
  const [own, other] = [spaceOf(subject.begin), spaceOf(begin)];
  return carrier.kind !== 'thread' && own !== undefined && other !== undefined && other !== own;
}

function isInterrupted(lane: Lane): boolean {
  return lane.some(({ kind }) => kind === 'irq');
}

/** `waits at src/main.rs:15`. */
function waitName(end: PollEnd): string {
  return waitText(awaitPlace(end)).replace(/^waiting/, 'waits');
}

function began(hart: number, time: GuestNanos): Omit<StoryNode, 'kind' | 'name'> {
  return { detail: undefined, hart, began: time, took: undefined, result: undefined, children: [] };
}

/** A Future's polls are inside of its life. */
function subjectNode(begin: AnyBegin): StoryNode {
  const node = nodeOf(begin, undefined);
  return begin.type === 'poll-begin'
    ? { ...node, kind: 'future', name: calledOf(begin.future), detail: undefined }
    : node;
}

function nodeOf(begin: AnyBegin, holder: string | undefined): StoryNode {
  const common = began(begin.hart, begin.time);
  if (begin.type === 'poll-begin') {
    const { future, state } = begin;
    return { ...common, kind: 'poll', name: `poll ${calledOf(future)}`, detail: state && `from ${stateText(state)}` };
  }
  const { function: fn, arguments: values } = begin;
  const kind = fn.kind === undefined || fn.kind === 'thread' ? 'call' : fn.kind;
  const held = holder === undefined ? undefined : `held by ${holder}`;
  const detail = kind === 'lock' ? held : argumentsText(values);
  return { ...common, kind, name: fn.name, detail: detail === '' ? undefined : detail };
}
