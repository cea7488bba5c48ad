import { type Addr, addOffset } from '../../base/addr.js';
import { Breath } from '../../base/breath.js';
import { addTo } from '../../base/made-once.js';
import { demangle, stripGenerics } from '../../dwarf/index.js';
import type { AwaitNode } from './await-tree.js';
import { type Reference, References } from './references.js';
import {
  type Awaited,
  type Counted,
  type Enders,
  Look,
  type Primitive,
  primitives,
  socketThatWakes,
} from './resources/index.js';
import type { TaskContext } from './runtime.js';

/** What the search for waits needs to know of a task. */
export interface Waiting extends AwaitNode {
  /** The address that stands for it in handles and wakers; undefined if its runtime does not say. */
  readonly header: Addr | undefined;
}

/** A task that can end a wait. */
export interface Ender<T> {
  readonly task: T;
  /** The Future of it that has the guard or the sender; undefined for a task whose end is waited for. */
  readonly holder: AwaitNode | undefined;
  /** Memory does not show whether it still has it. */
  readonly maybe: boolean;
}

/** That a task waits, for what, and for whom. */
export interface Wait<T> extends Pick<Awaited, 'kind' | 'address'> {
  /** More in words: `2 permits`. */
  readonly detail: string | undefined;
  /** The Future that waits. */
  readonly node: AwaitNode;
  /** The Futures around it, the innermost first. */
  readonly above: readonly AwaitNode[];
  /** The name of the static that it waits for. */
  readonly symbol: string | undefined;
  /** `held by`, `to be sent by`, `reachable by`; undefined if memory does not say who can end it. */
  readonly how: string | undefined;
  readonly enders: readonly Ender<T>[];
  readonly needs: Enders['needs'];
  /**
   * Who of those who can end it are among `enders`. `likely`: all, unless one was moved elsewhere or somebody makes
   * permits.
   */
  readonly known: 'all' | 'likely' | 'some';
  /** How many senders or receivers there are in all, by the channel's own count: also those that no task has. */
  readonly counted: Counted | undefined;
}

export interface Waits<T> {
  /** Of each task, in the order of its await tree. */
  readonly of: ReadonlyMap<T, readonly Wait<T>[]>;
  /** Tasks with a Future at the end of the tree of which it is not known what it waits for. */
  readonly open: ReadonlySet<T>;
}

interface Held<T> extends Reference {
  readonly task: T;
  readonly holder: AwaitNode;
}

const byName = new Map(primitives.flatMap((each) => each.futures.map((name) => [name, each] as const)));

/** Finds for what tasks wait, and which others can end that. */
export async function findWaits<T extends Waiting>(context: TaskContext, tasks: readonly T[]): Promise<Waits<T>> {
  const look = new Look(context);
  const open = new Set<T>();
  const pending = new Map<T, { node: AwaitNode; above: readonly AwaitNode[]; awaited: Awaited }[]>();
  const breath = new Breath();
  for (const task of tasks) {
    await breath.take();
    if (context.isBlocked(task)) continue;
    const ends = [...endsOf(task)];
    const known: { node: AwaitNode; above: readonly AwaitNode[]; awaited: Awaited }[] = [];
    for (const { node, above, primitive } of ends) {
      if (primitive?.isAdapter && node.awaits.length > 0 && !(await primitive.alsoWaits?.(look, node))) continue;
      const awaited = (await primitive?.awaited(look, node, above)) ?? (await socketThatWakes(look, node, task.header));
      if (awaited) known.push({ node, above, awaited });
      // A tree that was cut has other ends, too.
      if (!awaited || node.cut !== undefined) open.add(task);
    }
    if (known.length > 0) pending.set(task, known);
  }
  const owners = [...pending.values()].flat().flatMap(({ awaited }) => awaited.enders?.owners ?? []);
  const held = owners.length > 0 ? await heldBy(context, tasks, new Set(owners)) : [];
  const byHeader = new Map(tasks.flatMap((task) => (task.header === undefined ? [] : [[task.header, task] as const])));
  const all = { byHeader, ...knownBy(pending) };
  const of = new Map<T, readonly Wait<T>[]>();
  for (const [task, known] of pending) {
    const elsewhere = (each: Held<T>): boolean => each.task !== task;
    of.set(
      task,
      known.map(({ node, above, awaited }) => ({
        ...{ node, above, kind: awaited.kind, address: awaited.address },
        detail: awaited.free ? FREE : awaited.detail,
        symbol: awaited.address && symbolAt(context, awaited.address),
        counted: awaited.enders?.counted,
        ...endersOf(awaited, awaited.enders?.count === 'anybody' ? held.filter(elsewhere) : held, all),
      })),
    );
  }
  return { of, open };
}

/** A lock that was let go while a task waited for it. */
const FREE = 'free by now';

/** Who is known without what it has. */
interface Known<T> {
  readonly byHeader: ReadonlyMap<Addr, T>;
  /** By its waiting Future, or by the lock that it is first at. */
  readonly byNode: ReadonlyMap<Addr, Ender<T>>;
  /** By the address of the lock: who was given what only one can have, and was not polled since. */
  readonly given: ReadonlyMap<Addr, readonly Ender<T>[]>;
}

function knownBy<T>(
  pending: ReadonlyMap<T, readonly { node: AwaitNode; awaited: Awaited }[]>,
): Pick<Known<T>, 'byNode' | 'given'> {
  const [byNode, given] = [new Map<Addr, Ender<T>>(), new Map<Addr, Ender<T>[]>()];
  for (const [task, known] of pending)
    for (const { node, awaited } of known) {
      const { address, isFirst, free, enders } = awaited;
      const ender = { task, holder: node, maybe: false };
      byNode.set(node.address, ender);
      if (isFirst && address !== undefined) byNode.set(address, ender);
      if (free && enders?.count === 1 && address !== undefined) addTo(given, address, ender);
    }
  return { byNode, given };
}

interface End {
  readonly node: AwaitNode;
  readonly above: readonly AwaitNode[];
  readonly primitive: Primitive | undefined;
}

/** Where a tree ends: at Futures of which it is known what they wait for, also adapters of others, and at leaves. */
function* endsOf(root: AwaitNode): Generator<End> {
  const seen = new Set<Addr>();
  const visit = function* (node: AwaitNode, above: readonly AwaitNode[]): Generator<End> {
    const primitive = byName.get(waitName(node));
    if ((primitive?.isAdapter ?? primitive === undefined) && node.awaits.length > 0) {
      for (const inner of node.awaits) yield* visit(inner, [node, ...above]);
      if (primitive === undefined) return;
    }
    // A branch that a select! keeps is found twice: as a variable, and by its reference.
    if (!seen.has(node.address)) yield { node, above, primitive };
    seen.add(node.address);
  };
  yield* visit(root, []);
}

/** `embassy_sync::mutex::lock` for the `poll_fn` in this function; else the Future's own name. */
function waitName({ future, typeName }: AwaitNode): string {
  const [, closure] = /^core::future::poll_fn::PollFn<(.*)>$/.exec(typeName) ?? [];
  if (closure === undefined) return future?.future ?? stripGenerics(typeName);
  return stripGenerics(closure).replace(/::\{[^{}]*\}/g, '');
}

/** What the Futures of all tasks have of what ends waits. */
async function heldBy<T extends Waiting>(
  { debug, memory }: TaskContext,
  tasks: readonly T[],
  owners: ReadonlySet<string>,
): Promise<Held<T>[]> {
  const references = new References(memory, owners);
  const found = new Map<Addr, Held<T>>();
  const visit = async (task: T, node: AwaitNode): Promise<void> => {
    const type = node.future && debug.die(node.future.typeOffset);
    if (type && node.cut === undefined) {
      for (const each of await references.in(type, node.address)) {
        // The innermost Future that has it; sure, if one of them is.
        const maybe = each.maybe && found.get(each.at)?.maybe !== false;
        found.set(each.at, { ...each, maybe, task, holder: node });
      }
    }
    for (const inner of node.awaits) await visit(task, inner);
  };
  for (const task of tasks) await visit(task, task);
  return [...found.values()];
}

function endersOf<T>(
  { enders: asked, address, free = false }: Awaited,
  held: readonly Held<T>[],
  { byHeader, byNode, given }: Known<T>,
): Pick<Wait<T>, 'how' | 'enders' | 'needs' | 'known'> {
  if (asked === undefined || free) return { how: undefined, enders: [], needs: 'any', known: 'some' };
  const { how, owners, key, tasks, before, needs, count } = asked;
  const ahead = before === undefined ? undefined : byNode.get(before);
  if (ahead) return { how: 'queued behind', enders: [ahead], needs, known: 'all' };
  // Who was given it has no guard yet: guards that are to be seen are stale.
  const next = address === undefined ? undefined : given.get(address);
  if (next && count === 1) return { how, enders: next, needs, known: 'all' };
  if (tasks) {
    const found = tasks.flatMap((header) => byHeader.get(header) ?? []);
    const enders = found.map((task) => ({ task, holder: undefined, maybe: false }));
    return { how, enders, needs, known: found.length === tasks.length ? 'all' : 'some' };
  }
  const places = held.filter(
    ({ within, target }) => within.some((name) => owners?.includes(name)) && isAt(target, key),
  );
  if (count === 'anybody') return { how, enders: oneEach(places), needs, known: 'some' };
  const [first] = places;
  // In several places of one task: it was moved from one to the other.
  const isMoved = count === 1 && places.every(({ task }) => task === first?.task);
  const all = first && isMoved ? [{ ...first, maybe: places.every(({ maybe }) => maybe) }] : places;
  // A variable that was borrowed keeps its place after it was moved: with more than something counts, some are stale.
  const isStale = typeof count === 'number' && all.length > count;
  const enders = all.map(({ task, holder, maybe }) => ({ task, holder, maybe: isStale || maybe }));
  const sure = enders.filter(({ maybe }) => !maybe).length;
  const isAll = count !== 'unknown' && (needs === 'all' ? sure > 0 : sure === count);
  const isLikely = enders.length > 0 && (count === 'unknown' || isStale || enders.length === count);
  return { how, enders, needs, known: isAll ? 'all' : isLikely ? 'likely' : 'some' };
}

/** A task once, by its innermost Future that is sure to have it. */
function oneEach<T>(places: readonly Held<T>[]): Ender<T>[] {
  const found = new Map<T, Ender<T>>();
  for (const { task, holder, maybe } of places)
    if (found.get(task)?.maybe !== false) found.set(task, { task, holder, maybe });
  return [...found.values()];
}

function isAt({ address, size }: Reference['target'], key: Addr | undefined): boolean {
  return key !== undefined && key >= address && key < addOffset(address, Math.max(size, 1));
}

function symbolAt({ debug }: TaskContext, address: Addr): string | undefined {
  const symbol = debug.elf.symbols.at(address);
  return symbol && demangle(symbol.name);
}
