import { type Addr, addOffset } from '../../base/addr.js';
import { Breath } from '../../base/breath.js';
import { partOf, silent } from '../../base/logger.js';
import { demangle } from '../../dwarf/index.js';
import { plural } from '../../text/index.js';
import { type FutureSet, type FutureType, onlyHeld } from '../futures/index.js';
import { type AwaitNode, AwaitTrees, leafOf } from './await-tree.js';
import { type Blocking, findBlocking } from './blocking.js';
import { type Deadlock, findDeadlocks } from './deadlocks.js';
import { type Fate, type FoundRoot, isIn, type Runtime, type TaskContext, type TaskFacts } from './runtime.js';
import { isOnStack } from './runtimes/boxes.js';
import { search } from './runtimes/index.js';
import type { AddressRange } from './snapshot.js';
import { findWaits, type Wait, type Waiting } from './waits.js';
import { type FoundWaker, wakersInto } from './wakers.js';

/** A task, or what looks like one: the Future at its root with all that it awaits. */
export interface Task extends Waiting {
  /** The name of the runtime that found it. */
  readonly runtime: string;
  readonly fate: Fate;
  readonly facts: TaskFacts;
}

export interface Tasks {
  /** The runtimes that the program uses, by name; `search` where memory was searched for boxed Futures. */
  readonly runtimes: readonly string[];
  /** Those that will be polled again. */
  readonly tasks: readonly Task[];
  /** Why there is none of these; undefined if there is one. */
  readonly noTask: NoTask | undefined;
  /** What threads block on, while it waits. These are no tasks, but may wait for tasks, or have what tasks wait for. */
  readonly blocking: readonly Task[];
  /** What is no such task: ended, free, the runtime's own, or unreferenced. */
  readonly others: readonly Task[];
  /** What each task waits for, as far as it is known. */
  readonly waits: ReadonlyMap<Task, readonly Wait<Task>[]>;
  /** Tasks that wait for each other for ever. */
  readonly deadlocks: readonly Deadlock<Task>[];
  /** Tasks that wait, and that nobody can wake: no waker of theirs is left. */
  readonly lost: readonly Task[];
  /** Bytes that were searched. */
  readonly searched: number;
  /** Bytes that could not be read. */
  readonly unread: number;
  /** What could not be found out, one sentence each. */
  readonly notes: readonly string[];
}

/**
 * Every task that can be found, with its await tree. Each runtime that the program uses lists its own. Then memory is
 * searched for `dyn Future`s: every spawned Future is one in an executor that boxes its tasks. A Future that another
 * one holds is no task, nor is one that has returned. Futures that a hart polls now count, wherever they lie.
 */
export async function findTasks(context: Omit<TaskContext, 'note'>, runtimes: readonly Runtime[]): Promise<Tasks> {
  const notes = new Set<string>();
  const full: TaskContext = { ...context, note: (text) => notes.add(text) };
  const logger = partOf(context.logger ?? silent, 'tasks');
  const finder = new Finder(full, runtimes);
  const used: string[] = [];
  const breath = new Breath();
  for (const each of await findBlocking(full)) await finder.addBlocking(each);
  for (const runtime of [
    ...runtimes.filter((each) => each !== search),
    ...runtimes.filter((each) => each === search),
  ]) {
    const roots = await runtime.roots(full);
    logger.debug({ runtime: runtime.name, found: roots?.length ?? 'not in this program' }, 'a runtime was asked');
    if (roots === undefined) continue;
    if (runtime === search) await finder.addSearched(roots, used.length > 0);
    else {
      for (const root of roots) {
        await finder.add(runtime.name, root);
        await breath.take();
      }
    }
    used.push(runtime.name);
  }
  const { tasks, blocking, others } = finder.found();
  const waits = await findWaits(full, [...tasks, ...blocking]);
  const deadlocks = findDeadlocks(waits);
  // Who awaits `pending()` wants no wake. A sender that no task has may still wake one.
  const isWell = ({ kind, counted }: Wait<Task>): boolean => kind === 'nothing' || (counted?.count ?? 0) > 0;
  const lost = tasks.filter((task) => finder.isLost(task) && !waits.of.get(task)?.some(isWell));
  const { searched, unread } = context.memory;
  const counts = { tasks: tasks.length, blocking: blocking.length, others: others.length, lost: lost.length };
  logger.debug({ ...counts, deadlocks: deadlocks.length, searched, unread, notes: [...notes] }, 'tasks are found');
  const looked = { asked: runtimes, used, others: others.length, notes: [...notes] };
  return {
    runtimes: used,
    tasks,
    noTask: tasks.length === 0 ? noTask(context.futures, looked) : undefined,
    blocking,
    others,
    waits: waits.of,
    deadlocks,
    lost,
    searched,
    unread,
    notes: [...notes],
  };
}

/** The `runtime` of what a thread blocks on. */
export const BLOCK_ON = 'block_on';
/** A task that holds a box begins at most so far before it. */
const REACH = 512;

class Finder {
  readonly #context: TaskContext;
  readonly #runtimes: readonly Runtime[];
  readonly #trees: AwaitTrees;
  readonly #found: Task[] = [];
  readonly #lost = new Set<Task>();
  /** What some tree has below its root. */
  readonly #held = new Set<string>();

  constructor(context: TaskContext, runtimes: readonly Runtime[]) {
    this.#context = context;
    this.#runtimes = runtimes;
    this.#trees = new AwaitTrees(context.futures, context.memory);
  }

  async add(runtime: string, root: FoundRoot): Promise<void> {
    const { future, typeName = '?', address, fate = 'live', facts = {}, header } = root;
    const hasFuture = fate === 'live' || fate === 'internal';
    const bare = leafOf(future, future?.instance ?? typeName, address);
    const tree = future && hasFuture ? await this.#trees.read(future, address) : bare;
    const task = { ...tree, runtime, fate, facts, header };
    if (root.wakeable === false) this.#lost.add(task);
    this.#keep(task);
  }

  async addBlocking({ future, address, by }: Blocking): Promise<void> {
    const tree = await this.#trees.read(future, address);
    this.#keep({ ...tree, runtime: BLOCK_ON, fate: 'live', facts: { by }, header: undefined });
  }

  /**
   * What the search found. If a runtime has listed the tasks, a box that no tree reaches belongs to none of them.
   * Then it is a task only if a hart polls it, or if it has wakers that are no other runtime's.
   */
  async addSearched(roots: readonly FoundRoot[], isBesides: boolean): Promise<void> {
    const { running } = this.#context;
    const known = new Set(this.#found.map((task) => key(task.address, task.typeName)));
    const isNew = (future: FutureType, address: bigint): boolean => !known.has(key(address, future.instance));
    const candidates: Task[] = [];
    const add = async (future: FutureType, address: Addr, fate: Fate, places: readonly Addr[] = []): Promise<void> => {
      if (!isNew(future, address)) return;
      known.add(key(address, future.instance));
      const tree = await this.#trees.read(future, address);
      if (!isAlive(tree)) return;
      const shown = this.#mayBeChance(tree, places) ? 'unreferenced' : fate;
      candidates.push({ ...tree, runtime: search.name, fate: shown, facts: {}, header: undefined });
    };
    // On a thread's stack lies what it blocks on. That is no task, and shows only while it is polled.
    for (const { future, address } of running)
      await add(future, address, isBesides && isIn(this.#context.stacks, address) ? 'internal' : 'live');
    const isWoken = isBesides ? await this.#wokenBoxes(roots) : () => true;
    for (const root of roots) {
      const { future, address, fate = 'live' } = root;
      const other = fate !== 'unreferenced' && isOnStack(this.#context, root) ? 'internal' : 'unreferenced';
      const shown = fate === 'live' && !isWoken(root) ? other : fate;
      if (future) await add(future, address, shown, root.references);
    }
    // Live ones first: what they hold is not listed as unreferenced.
    for (const task of candidates.toSorted((a, b) => Number(a.fate !== 'live') - Number(b.fate !== 'live')))
      this.#keep(task);
  }

  /** On a stack two words stand next to each other by chance, and zeros are a Future's state before its first poll. */
  #mayBeChance({ state }: AwaitNode, places: readonly Addr[]): boolean {
    const { stacks } = this.#context;
    return state?.name === 'Unresumed' && places.length > 0 && places.every((at) => isIn(stacks, at));
  }

  /** Which boxes lie in what a waker leads to: another executor's tasks. */
  async #wokenBoxes(roots: readonly FoundRoot[]): Promise<(root: FoundRoot) => boolean> {
    const rangeOf = (at: Addr): AddressRange => ({ start: addOffset(at, -REACH), end: addOffset(at, 1) });
    const { elf } = this.#context.debug;
    const isTheirs = ({ clone }: FoundWaker): boolean => {
      const symbol = elf.symbols.at(clone);
      const name = symbol ? demangle(symbol.name) : '';
      return this.#runtimes.some(({ wakers }) => wakers?.test(name));
    };
    const ranges = roots.flatMap(({ references }) => references.map(rangeOf));
    const wakers = await wakersInto(this.#context, ranges);
    const isWoken = (at: Addr): boolean => wakers.get(rangeOf(at).start)?.some((waker) => !isTheirs(waker)) ?? false;
    return ({ references }) => references.some(isWoken);
  }

  found(): Pick<Tasks, 'tasks' | 'blocking' | 'others'> {
    const roots = this.#found.filter(
      ({ runtime, address, typeName }) =>
        (runtime !== search.name && runtime !== BLOCK_ON) || !this.#held.has(key(address, typeName)),
    );
    roots.sort((a, b) => idOf(a) - idOf(b) || (a.address < b.address ? -1 : a.address > b.address ? 1 : 0));
    const isBlocking = ({ runtime }: Task): boolean => runtime === BLOCK_ON;
    return {
      tasks: roots.filter((each) => each.fate === 'live' && !isBlocking(each)),
      blocking: roots.filter(isBlocking),
      others: roots.filter(({ fate }) => fate !== 'live'),
    };
  }

  isLost(task: Task): boolean {
    return this.#lost.has(task);
  }

  #keep(task: Task): void {
    this.#found.push(task);
    for (const inner of task.awaits) this.#hold(inner);
  }

  #hold(node: AwaitNode): void {
    this.#held.add(key(node.address, node.typeName));
    for (const inner of node.awaits) this.#hold(inner);
  }
}

function key(address: bigint, typeName: string): string {
  return `${address}:${typeName}`;
}

function idOf({ facts }: Task): number {
  const { id } = facts;
  return typeof id === 'number' ? id : 0;
}

/** Readable, and in a state in which it may still be polled. One that only holds another is over with that one. */
function isAlive(node: AwaitNode): boolean {
  const { future, state, cut, awaits } = node;
  if (cut === 'unreadable' || !future) return false;
  if (future.discriminant !== undefined)
    return state !== undefined && state.name !== 'Returned' && state.name !== 'Panicked';
  const held = new Set(onlyHeld(future).map((each) => each.future));
  const [inner] = awaits;
  return inner?.future === undefined || !held.has(inner.future) || isAlive(inner);
}

/** Why no task was found, and what helps: two clauses of a sentence. */
export interface NoTask {
  readonly why: string;
  readonly wayOut: string;
}

/** What a look without a task has found instead. */
interface Looked {
  /** The runtimes that were asked. */
  readonly asked: readonly Runtime[];
  /** The names of those that the program uses. */
  readonly used: readonly string[];
  /** How many look like a task and are none. */
  readonly others: number;
  readonly notes: readonly string[];
}

const LATER = 'look again at another moment';

export function noTask(futures: Pick<FutureSet, 'all'>, { asked, used, others, notes }: Looked): NoTask {
  const known = used.filter((name) => name !== search.name);
  const unread = known.filter((name) => notes.some((note) => note.startsWith(`${name}: `)));
  if (unread.length > 0) {
    const why = `debug info about ${unread.join(' and ')} is missing, as the notes say`;
    return { why, wayOut: 'build all crates with debug = 2' };
  }
  if (known.length > 0) {
    const verb = known.length === 1 ? 'has' : 'have';
    const why = `${known.join(' and ')} ${verb} none alive in the memory that was read, so none is spawned yet or all have ended`;
    return { why, wayOut: `${LATER}; what a thread blocks on is no task, and rsptrace bt shows it` };
  }
  if (!asked.includes(search)) {
    const why = `the program does not use ${asked.map(({ name }) => name).join(' or ')}`;
    return { why, wayOut: 'leave out --runtime' };
  }
  if (futures.all.length === 0) {
    const wayOut = "rsptrace bt shows its threads, and -p 'lock:**' its locks; async code shows with debug = 2";
    return { why: 'the program has no Future that DWARF describes', wayOut };
  }
  if (others > 0) return { why: 'nothing that lives leads to the boxed Futures in memory', wayOut: LATER };
  const boxed = futures.all.filter(({ vtables }) => vtables.length > 0).length;
  if (boxed > 0) {
    const why = `none of the ${plural(boxed, 'kind')} of Futures that it boxes is in the memory that was read`;
    return { why, wayOut: LATER };
  }
  const why = 'the program uses no runtime that is known and boxes none as dyn Future, so nothing says where tasks lie';
  return { why, wayOut: 'rsptrace record shows their polls, and a runtime of your own (--plugin) where they lie' };
}
