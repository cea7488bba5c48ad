/*
 * embassy-executor: a task is a `TaskStorage<F>`, a header and room for the Future, in a static. On stable compilers
 * the static is untyped, with room for a pool. A function next to it has the type:
 *
 *   static POOL: TaskPoolHolder<SIZE, ALIGN>      fn __task_pool_get::<_, _, Fut> -> &TaskPool<Fut, N>
 *   TaskStorage<F> { raw: TaskHeader { state, executor, poll_fn, timer_queue_item, metadata, .. }, future }
 *
 * A storage elsewhere is known by `poll_fn`: the address of `TaskStorage::<F>::poll`, from its first spawn on.
 */

import { type Addr, addOffset, addr, hex } from '../../../base/addr.js';
import {
  type DebugInfo,
  type Die,
  DW_AT,
  DW_TAG,
  demangle,
  genericsOf,
  layoutOf,
  nameOf,
  pathOf,
  staticAddress,
  typeName,
} from '../../../dwarf/index.js';
import type { KnownTask, TaskPoller } from '../../futures/index.js';
import { memberAt, numberAt, type Part, partCalled } from '../layout.js';
import { type FoundRoot, isIn, type Runtime, type TaskContext, type TaskFacts } from '../runtime.js';
import { ledTo } from '../wakers.js';
import { functionsOf, type TaskFunction } from './constants.js';

const RAW = 'embassy_executor::raw';
/** Bits of the state where it is one number. embassy-executor/src/raw/state_atomics.rs */
const STATE = { SPAWNED: 1n, RUN_QUEUED: 2n } as const;

/** Bytes of a task's name. */
const MOST_NAME = 4096n;

/** How a `TaskStorage<F>` lies in memory. */
interface StorageLayout {
  readonly future: Die;
  readonly raw: Part;
  readonly size: number;
  readonly align: number;
  readonly state: Part;
  /** Where each is a byte of its own, as on Arm; undefined where the state has bits. */
  readonly flags: { readonly spawned: Part; readonly queued: Part } | undefined;
  readonly pollFn: Part;
  readonly executor: Part | undefined;
  readonly name: Part | undefined;
  readonly timer: Part | undefined;
  readonly place: Part;
}

export const embassy: Runtime = {
  name: 'embassy',
  wakers: /^embassy_executor::raw::/,
  polls: /^embassy_executor::raw::TaskStorage::poll(?:::|$)/,
  async roots(context) {
    const layouts = storageLayouts(context);
    if (layouts.size === 0) return undefined;
    const storages = new Map<Addr, StorageLayout>();
    for (const [at, layout] of await spawnedOnce(context)) storages.set(at, layout);
    const slots = await pooled(context, layouts, storages);
    for (const [at, layout] of slots) storages.set(at, layout);
    const found: StoredTask[] = [];
    for (const [at, layout] of [...storages].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const root = await taskAt(context, layout, at);
      // Elsewhere it is what is left of one that was made on a stack, or was moved: no task can be spawned in it.
      if (root && (root.fate !== 'free' || slots.has(at))) found.push({ root, layout, at });
    }
    return withoutWakers(context, found);
  },
};

interface StoredTask {
  readonly root: FoundRoot;
  readonly layout: StorageLayout;
  readonly at: Addr;
}

/**
 * Nothing counts the wakers of a task. It has none if no word leads to its header, and if it is in no queue. Headers
 * themselves do not count, because a queue's links stay when a task has left it; nor does what ended tasks have left.
 */
async function withoutWakers(context: TaskContext, tasks: readonly StoredTask[]): Promise<FoundRoot[]> {
  const ignored = tasks.map(({ root, layout: { raw, size }, at }) =>
    root.fate === 'free' ? { start: at, length: size } : { start: addOffset(at, raw.offset), length: raw.size },
  );
  const isPolled = ({ at, layout: { size } }: StoredTask): boolean =>
    context.running.some(({ address }) => address >= at && address < addOffset(at, size));
  const idle = tasks.filter((task) => task.root.facts?.state === SPAWNED && !('timer at' in task.root.facts));
  const suspects = idle.filter((task) => !isPolled(task)).flatMap(({ root }) => root.header ?? []);
  const led = suspects.length > 0 ? await ledTo(context, suspects, ignored) : undefined;
  const isLost = ({ header }: FoundRoot): boolean =>
    led !== undefined && header !== undefined && suspects.includes(header) && !led.has(header);
  return tasks.map(({ root }) => (isLost(root) ? { ...root, wakeable: false } : root));
}

/** Its state, if it is in no run queue. */
const SPAWNED = 'spawned';

export function storageLayouts(context: Pick<TaskContext, 'debug' | 'note'>): Map<string, StorageLayout> {
  const found = new Map<string, StorageLayout>();
  for (const storage of context.debug.typesNamed(`${RAW}::TaskStorage`)) {
    const future = genericsOf(storage).get('F');
    if (future === undefined) continue;
    const layout = context.debug.attempt(storage.unit, () => storageLayout(context, storage, future));
    if (layout) found.set(typeName(future), layout);
  }
  return found;
}

function storageLayout({ note }: Pick<TaskContext, 'note'>, storage: Die, future: Die): StorageLayout | undefined {
  const without = (what: string): void => note(`embassy: ${what}, so its tasks cannot be listed`);
  const less = (what: string): void => note(`embassy: ${what}`);
  const state = memberAt(storage, 'raw.state', without);
  const pollFn = memberAt(storage, 'raw.poll_fn', without);
  const place = memberAt(storage, 'future', without);
  const raw = memberAt(storage, 'raw', without);
  const { size, align = 8 } = layoutOf(storage);
  if (!raw || !state || !pollFn || !place || size === 0) return undefined;
  const [spawned, queued] = ['spawned', 'run_queued'].map((name) => memberAt(state.type, name));
  const inState = (part: Part): Part => ({ ...part, offset: state.offset + part.offset });
  return {
    ...{ future, raw, size, align, state, pollFn, place },
    flags: spawned && queued && { spawned: inState(spawned), queued: inState(queued) },
    executor: memberAt(storage, 'raw.executor', less),
    // Only with its feature.
    name: memberAt(storage, 'raw.metadata.name'),
    timer: memberAt(storage, 'raw.timer_queue_item'),
  };
}

/** The functions by which the executor polls tasks, and what the tasks of each look like. */
export function embassyPolls(
  context: Pick<TaskContext, 'debug' | 'note'>,
  layouts = storageLayouts(context),
): (TaskFunction & { readonly layout: StorageLayout })[] {
  return functionsOf(context, `${RAW}::TaskStorage::poll`).flatMap(({ die, address }) => {
    const future = genericsOf(die).get('F');
    const layout = future && layouts.get(typeName(future));
    return layout ? [{ die, address, layout }] : [];
  });
}

/** Those of them where the tasks have names. */
export function embassyPollers(
  context: Pick<TaskContext, 'debug'>,
  polls: ReturnType<typeof embassyPolls>,
): TaskPoller[] {
  return polls.flatMap(({ die, layout }) => {
    const words = layout.name && wordsOfText(layout.name);
    if (!words) return [];
    const header = layout.raw.offset;
    const taskOf = ([start = 0n, length = 0n]: readonly bigint[]): KnownTask => {
      const isText = start !== 0n && length <= MOST_NAME;
      const bytes = isText ? context.debug.elf.bytesAt(addr(start), Number(length)) : undefined;
      return { runtime: 'embassy', ...(bytes ? { name: new TextDecoder().decode(bytes) } : {}) };
    };
    return [{ die, name: `${RAW}::TaskStorage::poll`, header, words: words.map((offset) => offset - header), taskOf }];
  });
}

/** Storages in memory whose `poll_fn` is that of a `TaskStorage`. */
async function spawnedOnce(context: TaskContext): Promise<Map<Addr, StorageLayout>> {
  const byPoll = new Map<bigint, StorageLayout>(embassyPolls(context).map(({ address, layout }) => [address, layout]));
  const found = new Map<Addr, StorageLayout>();
  for (const [poll, places] of context.memory.places(byPoll.keys())) {
    const layout = byPoll.get(poll);
    for (const place of places) {
      const at = layout && addOffset(place, -layout.pollFn.offset);
      if (at === undefined || at % BigInt(layout?.align ?? 8) !== 0n || isIn(context.stacks, at)) continue;
      if (layout) found.set(at, layout);
    }
  }
  return found;
}

/** The storages of every pool in the statics. */
async function pooled(
  context: TaskContext,
  layouts: ReadonlyMap<string, StorageLayout>,
  known: ReadonlyMap<Addr, StorageLayout>,
): Promise<Map<Addr, StorageLayout>> {
  const found = new Map<Addr, StorageLayout>();
  for (const { at, size, name, future } of poolsOf(context)) {
    const inside = [...known].find(([each]) => each >= at && each < at + BigInt(size))?.[1];
    const layout = inside ?? (future === undefined ? byTask(layouts, name) : layouts.get(future));
    if (layout === undefined) {
      context.note(`embassy: the type of the tasks in the pool ${name} is not in the debug info: they are not listed`);
      continue;
    }
    for (let offset = 0; offset + layout.size <= size; offset += layout.size) found.set(addOffset(at, offset), layout);
  }
  return found;
}

/** Optimised away, the function next to the pool says nothing; the macro calls the function of `task` `__task_task`. */
function byTask(layouts: ReadonlyMap<string, StorageLayout>, pool: string): StorageLayout | undefined {
  const [task = '', ...modules] = pool.split('::').slice(0, -1).reverse();
  const start = `${modules.reverse().join('::')}::__${task}_task::`;
  return [...layouts].find(([future]) => future.startsWith(start))?.[1];
}

interface Pool {
  readonly at: Addr;
  readonly size: number;
  readonly name: string;
  /** The type of its tasks' Futures. */
  readonly future: string | undefined;
}

const POOL_TYPE = /^(?:TaskPool|TaskPoolHolder|TaskStorage)</;

function poolsOf({ debug }: TaskContext): Pool[] {
  const found = new Map<Addr, Pool>();
  const { pools, futures } = poolsIn(debug);
  for (const { scope, die, type } of pools) {
    const at = staticAddress(die);
    const { size } = layoutOf(type);
    const isLoaded = (each: Addr): boolean => debug.elf.isLoaded(debug.elf.codes.toCode(each));
    if (at === undefined || size === 0 || !isLoaded(at) || !isLoaded(addOffset(at, size - 1))) continue;
    const own = genericsOf(type).get('F');
    const future = own ? typeName(own) : futures.get(scope);
    found.set(at, { at, size, name: `${scope}::${nameOf(die) ?? '?'}`, future });
  }
  return [...found.values()];
}

interface PoolVariable {
  readonly scope: string;
  readonly die: Die;
  readonly type: Die;
}

/** `futures`: by scope, because a pool and the function that knows its type are neighbours. */
function poolsIn(debug: DebugInfo): { readonly pools: readonly PoolVariable[]; futures: ReadonlyMap<string, string> } {
  const futures = new Map<string, string>();
  const pools: PoolVariable[] = [];
  const scopeOf = (die: Die): string => pathOf(die).slice(0, -1).join('::');
  debug.walk((cursor) => {
    if (cursor.tag === DW_TAG.variable && cursor.has(DW_AT.location)) {
      const type = cursor.follow(DW_AT.type);
      const die = type && POOL_TYPE.test(nameOf(type) ?? '') ? cursor.die() : undefined;
      if (type && die) pools.push({ scope: scopeOf(die), die, type });
    } else if (cursor.tag === DW_TAG.subprogram && cursor.name?.startsWith('__task_pool_get<')) {
      const die = cursor.die();
      const future = genericsOf(die).get('Fut');
      if (future) futures.set(scopeOf(die), typeName(future));
    }
  });
  return { pools, futures };
}

async function taskAt(context: TaskContext, layout: StorageLayout, at: Addr): Promise<FoundRoot | undefined> {
  const bytes = await context.memory.read(at, layout.size);
  if (bytes === undefined) return undefined;
  const { flags, state } = layout;
  const word = numberAt(bytes, state);
  const spawned = flags ? numberAt(bytes, flags.spawned) !== 0n : (word & STATE.SPAWNED) !== 0n;
  const queued = flags ? numberAt(bytes, flags.queued) !== 0n : (word & STATE.RUN_QUEUED) !== 0n;
  const executor = layout.executor && numberAt(bytes, layout.executor);
  const name = layout.name && (await textAt(context, bytes, layout.name));
  const expires = spawned ? expiry(context, layout, bytes) : undefined;
  const facts: TaskFacts = {
    ...(name === undefined ? {} : { name }),
    state: spawned ? (queued ? `${SPAWNED}, in the run queue` : SPAWNED) : 'free',
    ...(expires === undefined ? {} : { 'timer at': expires }),
    ...(spawned && executor ? { executor: symbolAt(context, addr(executor)) } : {}),
  };
  return {
    future: context.futures.ofType(layout.future),
    typeName: typeName(layout.future),
    address: addOffset(at, layout.place.offset),
    references: [at],
    header: addOffset(at, layout.raw.offset),
    fate: spawned ? 'live' : 'free',
    facts,
  };
}

/** In ticks, if the task is in the integrated timer queue. */
function expiry({ debug }: TaskContext, { timer }: StorageLayout, bytes: Uint8Array): string | undefined {
  const [item] = debug.typesNamed('embassy_time_queue_utils::queue_integrated::QueueItem');
  const at = item && memberAt(item, 'expires_at');
  const waker = item && memberAt(item, 'waker');
  if (!timer || !at || !waker || at.offset + at.size > timer.size) return undefined;
  const inTimer = ({ offset, size }: Part): bigint => numberAt(bytes, { offset: timer.offset + offset, size });
  // An `Option<Waker>`: its first word is no null pointer if there is one.
  return inTimer({ ...waker, size: 8 }) === 0n ? undefined : String(inTimer(at));
}

/** Where the pointer and the length of an `Option<&'static str>` inside wrappers lie. */
function wordsOfText(part: Part): readonly [start: number, length: number] | undefined {
  const text = partCalled(part.type, '&str');
  const [start, length] = ['data_ptr', 'length'].map((name) => text && memberAt(text.type, name));
  if (!text || !start || !length) return undefined;
  const base = part.offset + text.offset;
  return [base + start.offset, base + length.offset];
}

/** The text of an `Option<&'static str>`: from the ELF if it is a constant there. */
async function textAt(context: TaskContext, bytes: Uint8Array, part: Part): Promise<string | undefined> {
  const words = wordsOfText(part);
  if (!words) return undefined;
  const [start, length] = words.map((offset) => numberAt(bytes, { offset, size: 8 })) as [bigint, bigint];
  if (start === 0n || length > MOST_NAME) return undefined;
  const [at, size] = [addr(start), Number(length)];
  const found = context.debug.elf.bytesAt(at, size) ?? (await context.memory.read(at, size));
  return found && new TextDecoder().decode(found);
}

function symbolAt({ debug }: TaskContext, address: Addr): string {
  const symbol = debug.elf.symbols.at(address);
  return symbol ? demangle(symbol.name) : hex(address);
}
