import type { Addr } from '../../base/addr.js';
import {
  type AwaitLink,
  type Cancelled,
  type DerivedPoll,
  type FutureRef,
  type HartInfo,
  type PollBegin,
  type PollEnd,
  type PollLost,
  type RootRef,
  type StateChange,
  type StateRef,
  type TraceEvent,
  type TraceInfo,
  timeOf,
  type Wake,
} from '../events/events.js';
import { isOfPart, isOfTask, placeOf } from '../events/roots.js';
import { Fold } from '../events/sinks.js';
import { HartLabels } from '../events/text.js';
import { type Landmark, landmarkReached } from '../events/window.js';

/** A Future within a task, and what it awaits. */
export interface AwaitAt {
  readonly name: string;
  readonly instance: string;
  readonly address: Addr | undefined;
  readonly state: StateRef | undefined;
  /** It is being polled. */
  readonly isOpen: boolean;
  readonly awaits: readonly AwaitAt[];
}

/** A task at a moment. Times are nanoseconds of the trace. */
export interface TaskAt {
  readonly root: RootRef;
  /** `unknown`: its last poll's end was not seen, or not understood. */
  readonly state: 'running' | 'waiting' | 'unknown';
  /** The beginning of its present poll, or the end of its last one. */
  readonly since: number;
  /** Where it is polled, or was. */
  readonly hart: number;
  readonly polls: number;
  readonly first: number;
  /** Since its last poll began. */
  readonly woken: Wake | undefined;
  /** The task's own Future; several if only what it holds was traced. */
  readonly tree: readonly AwaitAt[];
}

/** Futures by type and address. */
type Nodes = Map<string, Node>;

interface Node {
  readonly future: FutureRef;
  readonly address: Addr;
  state: StateRef | undefined;
  chain: readonly AwaitLink[];
  isOpen: boolean;
  /** The number of its last poll. */
  polled: number;
  readonly inside: Nodes;
}

interface Open {
  readonly begin: PollBegin;
  readonly node: Node;
  readonly around: Nodes;
  readonly number: number;
}

interface Task {
  readonly root: RootRef;
  readonly first: number;
  readonly nodes: Nodes;
  readonly open: Open[];
  state: TaskAt['state'];
  since: number;
  hart: number;
  polls: number;
  woken: Wake | undefined;
}

const noChain: readonly AwaitLink[] = [];

/** Every task and what it awaits at a moment. What comes later is not looked at. */
export class TasksAt extends Fold {
  readonly #at: Landmark;
  /** By the root's key; those that have ended are forgotten. */
  readonly #tasks = new Map<number, Task>();
  readonly #newest = new Map<bigint, Task>();
  #number = 0;
  #isOver = false;
  #time = 0;
  readonly labels = new HartLabels();
  /** Tasks that had ended. */
  ended = 0;

  constructor(at: Landmark) {
    super();
    this.#at = at;
  }

  override begin(info: TraceInfo): void {
    this.labels.begin(info);
  }

  override hart(hart: HartInfo): void {
    this.labels.hart(hart);
  }

  /** The moment has come, and did not lie behind the trace's end. */
  get isReached(): boolean {
    return this.#isOver;
  }

  /** Nothing was polled up to the moment. */
  get isEmpty(): boolean {
    return this.#tasks.size === 0 && this.ended === 0;
  }

  /** The moment: that of `at`, or of what happened then. */
  get time(): number {
    return typeof this.#at === 'number' ? this.#at : this.#time;
  }

  event(event: TraceEvent): void {
    if (this.#isOver) return;
    const time = timeOf(event);
    const isNumber = typeof this.#at === 'number';
    this.#isOver = isNumber ? time > (this.#at as number) : landmarkReached(event, this.#at);
    if (isNumber && this.#isOver) return;
    this.#time = time;
    this.#take(event);
  }

  /** In the order of their first polls. */
  tasks(): TaskAt[] {
    return [...this.#tasks.values()].map(({ root, state, since, hart, polls, first, woken, nodes }) => {
      return { root, state, since, hart, polls, first, woken, tree: treeOf(nodes) };
    });
  }

  #take(event: TraceEvent): void {
    if (isOfPart(event)) return;
    if (event.type === 'poll-begin') this.#begins(event);
    else if (event.type === 'poll-end') this.#ends(event);
    else if (event.type === 'poll-lost') this.#loses(event);
    else if (event.type === 'wake') this.#wakes(event);
    else if (event.type === 'derived-poll' || event.type === 'state') this.#derives(event);
    else if (event.type === 'cancelled') this.#cancels(event);
    else if (event.type === 'gap') this.#misses(event.from);
    else if (event.type === 'reset') {
      this.#tasks.clear();
      this.#newest.clear();
    }
  }

  #begins(begin: PollBegin): void {
    const task = this.#taskOf(begin);
    if (task.open.length === 0) {
      task.polls++;
      task.state = 'running';
      task.since = begin.time;
      task.hart = begin.hart;
      task.woken = undefined;
    }
    const around = task.open.at(-1)?.node.inside ?? task.nodes;
    const key = `${begin.future.key} ${begin.address}`;
    const number = ++this.#number;
    const { future, address, state } = begin;
    const node = around.get(key) ?? {
      future,
      address,
      state,
      chain: noChain,
      isOpen: true,
      polled: 0,
      inside: new Map(),
    };
    around.set(key, node);
    node.isOpen = true;
    node.polled = number;
    node.state = state;
    task.open.push({ begin, node, around, number });
  }

  #ends(end: PollEnd): void {
    const closed = this.#close(end);
    if (closed === undefined) return;
    const { task, open } = closed;
    const { node, around, begin, number } = open;
    if (end.result === 'ready' || end.result === 'panicked') {
      around.delete(`${node.future.key} ${node.address}`);
      if (isOfTask(begin)) this.#over(task);
    } else {
      node.state = end.state;
      node.chain = end.chain;
      forgetOthers(node, end.state === begin.state ? 0 : number);
    }
    if (task.open.length > 0) return;
    task.state = end.result === 'unknown' ? 'unknown' : 'waiting';
    task.since = end.time;
  }

  #loses(lost: PollLost): void {
    const closed = this.#close(lost);
    if (closed === undefined || closed.task.open.length > 0) return;
    closed.task.state = 'unknown';
    closed.task.since = lost.time;
  }

  #wakes(wake: Wake): void {
    const task = wake.root && this.#tasks.get(wake.root.key);
    if (task) task.woken ??= wake;
  }

  /** What waited may have been polled since. */
  #misses(from: number): void {
    for (const task of this.#tasks.values()) {
      if (task.state === 'waiting') Object.assign(task, { state: 'unknown', since: Math.max(task.since, from) });
      task.woken = undefined;
    }
  }

  /** A Future was dropped. With a task's own the task is over. */
  #cancels(event: Cancelled): void {
    const task = event.root && this.#tasks.get(event.root.key);
    if (task === undefined) return;
    const found = find(task.nodes, `${event.future.key} ${event.address}`);
    if (isOfTask(event)) this.#over(task);
    else if (found && !found.node.isOpen) found.around.delete(found.key);
  }

  /** A poll that was inlined, or what it changed. */
  #derives(event: DerivedPoll | StateChange): void {
    const task = this.#tasks.get(event.root.key);
    if (task === undefined) return;
    const state = event.type === 'state' ? event.to : event.state;
    const isReady =
      event.type === 'state'
        ? finalStates.has(state?.name ?? '')
        : event.result === 'ready' || event.result === 'panicked';
    const found = find(task.nodes, `${event.future.key} ${event.address}`);
    if (found === undefined || found.node.isOpen) return;
    if (isReady) found.around.delete(found.key);
    else found.node.state = state ?? found.node.state;
  }

  /** What ends; what is open inside it ends unseen. */
  #close({ root, begin }: PollEnd | PollLost): { readonly task: Task; readonly open: Open } | undefined {
    const task = this.#tasks.get(root.key);
    const at = task?.open.findLastIndex((open) => open.begin === begin) ?? -1;
    const open = task?.open[at];
    if (task === undefined || open === undefined) return undefined;
    for (const { node } of task.open.splice(at)) node.isOpen = false;
    return { task, open };
  }

  #taskOf({ root, time, hart }: PollBegin): Task {
    const known = this.#tasks.get(root.key);
    if (known) return known;
    // What lies where another task lay has its memory: that one was dropped.
    const before = this.#newest.get(placeOf(root));
    if (before && before.open.length === 0) this.#over(before);
    const state = 'running';
    const nodes: Nodes = new Map();
    const task: Task = { root, first: time, nodes, open: [], state, since: time, hart, polls: 0, woken: undefined };
    this.#tasks.set(root.key, task);
    this.#newest.set(placeOf(root), task);
    return task;
  }

  #over({ root }: Task): void {
    if (this.#tasks.delete(root.key)) this.ended++;
  }
}

const finalStates = new Set(['Returned', 'Panicked']);

function find(
  nodes: Nodes,
  key: string,
): { readonly node: Node; readonly around: Nodes; readonly key: string } | undefined {
  const all = [nodes];
  for (const around of all) {
    const node = around.get(key);
    if (node) return { node, around, key };
    for (const { inside } of around.values()) all.push(inside);
  }
  return undefined;
}

/** Of what it holds, what was not polled since: an async fn awaits one Future, and at another await other ones. */
function forgetOthers({ future, inside }: Node, since: number): void {
  let least = since;
  if (future.kind !== 'impl') for (const { polled } of inside.values()) least = Math.max(least, polled);
  for (const [key, { polled }] of inside) if (polled < least) inside.delete(key);
}

/** What is nested deeper is left out, as in a story: nobody reads it, and it would not be printed. */
const mostDeep = 500;
const leftOut = `[nested deeper than ${mostDeep}: left out]`;
const deeper: readonly AwaitAt[] = [
  { name: leftOut, instance: leftOut, address: undefined, state: undefined, isOpen: false, awaits: [] },
];

function treeOf(nodes: Nodes, depth = 1): readonly AwaitAt[] {
  if (depth > mostDeep) return deeper;
  return [...nodes.values()].map(({ future, address, state, chain, isOpen, inside }) => ({
    name: future.future,
    instance: future.instance,
    address,
    state,
    isOpen,
    // Of Futures that were not traced the chain says.
    awaits: inside.size > 0 ? treeOf(inside, depth + 1) : isOpen ? [] : chainOf(chain, depth + 1),
  }));
}

/** One within the other. */
function chainOf([link, ...rest]: readonly AwaitLink[], depth: number): readonly AwaitAt[] {
  if (link === undefined) return [];
  if (depth > mostDeep) return deeper;
  const { future, typeName, address, state } = link;
  const [name, instance] = [future?.future ?? typeName, future?.instance ?? typeName];
  return [{ name, instance, address, state, isOpen: false, awaits: chainOf(rest, depth + 1) }];
}
