import { type Addr, addOffset, addr } from '../base/addr.js';
import type { MemoryReader } from '../base/memory-reader.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { FutureSet, FutureType } from '../futures/index.js';
import { type AwaitNode, AwaitTrees } from './await-tree.js';
import type { Region } from './memory-image.js';

/** Where a task was found. */
export interface FoundRoot {
  readonly future: FutureType;
  readonly address: Addr;
  /** The words that point to it: `Box<dyn Future>`s, in statics, on the heap, on a stack. */
  readonly references: readonly Addr[];
}

/** The data that a runtime plugin, or the search, can use. */
export interface TaskContext {
  /** The program's debug info: with `rsptrace/values` a runtime reads the executor's own statics by it. */
  readonly debug: DebugInfo;
  readonly futures: FutureSet;
  readonly memory: MemoryReader;
  /** Memory that may hold tasks: writable segments of the program, its heap. */
  readonly regions: readonly Region[];
  /** Unused parts of stacks: their content is stale. */
  readonly dead: readonly Region[];
  /** The outermost Future that each hart polls now: also a task, wherever it lies. */
  readonly running: readonly { readonly future: FutureType; readonly address: Addr }[];
}

/** Knows where one executor keeps its tasks. Asked before the search, which knows no executor. */
export interface Runtime {
  readonly name: string;
  /** The executor's tasks; undefined if the program does not use this runtime. */
  roots(context: TaskContext): Promise<readonly FoundRoot[] | undefined>;
}

export interface Tasks {
  /** The runtime that listed them; `search` if none did. */
  readonly runtime: string;
  readonly tasks: readonly AwaitNode[];
  /** Bytes that were searched. */
  readonly searched: number;
  /** Bytes that could not be read. */
  readonly unread: number;
}

/**
 * Every task that can be found, with its await tree. The first runtime that knows the program lists the tasks.
 * Without one, the program's memory is searched for `dyn Future`s: every spawned future is one in an executor that
 * boxes its tasks. A Future that another one holds is no task, nor is one that has returned. Futures that a hart
 * polls now count, wherever they lie.
 */
export async function findTasks(context: TaskContext, runtimes: readonly Runtime[] = []): Promise<Tasks> {
  const trees = new AwaitTrees(context.futures, context.memory);
  for (const runtime of runtimes) {
    const roots = await runtime.roots(context);
    if (!roots) continue;
    const tasks: AwaitNode[] = [];
    for (const { future, address } of roots) tasks.push(await trees.read(future, address));
    return { runtime: runtime.name, tasks, searched: 0, unread: 0 };
  }
  const { roots, searched, unread } = await searchBoxes(context);
  const known = new Set(roots.map(({ future, address }) => `${address}:${future.instance}`));
  const onStacks = context.running.filter(({ future, address }) => !known.has(`${address}:${future.instance}`));
  const candidates: AwaitNode[] = [];
  for (const { future, address } of [...roots, ...onStacks]) {
    const tree = await trees.read(future, address);
    if (isAlive(tree)) candidates.push(tree);
  }
  const held = new Set<string>();
  for (const tree of candidates) for (const inner of tree.awaits) note(inner, held);
  const tasks = candidates.filter((tree) => !held.has(key(tree)));
  tasks.sort((a, b) => (a.address < b.address ? -1 : a.address > b.address ? 1 : 0));
  return { runtime: 'search', tasks, searched, unread };
}

function key({ address, typeName }: AwaitNode): string {
  return `${address}:${typeName}`;
}

function note(node: AwaitNode, held: Set<string>): void {
  held.add(key(node));
  for (const inner of node.awaits) note(inner, held);
}

/** Readable, and in a state in which it may still be polled. */
function isAlive({ future, state, cut }: AwaitNode): boolean {
  if (cut === 'unreadable' || !future) return false;
  if (future.discriminant === undefined) return true;
  return state !== undefined && state.name !== 'Returned' && state.name !== 'Panicked';
}

/** Bytes of one read: large enough to be fast over a wire, small enough to lose little to an unmapped page. */
const CHUNK = 1 << 16;
const WORD = 8;

/**
 * Finds `Box<dyn Future>`s. Each is a word that is the address of a Future's vtable, behind a word that points to a
 * possible place of such a Future. Each Future is listed once, however many words point to it.
 */
export async function searchBoxes(
  context: TaskContext,
): Promise<{ readonly roots: readonly FoundRoot[]; readonly searched: number; readonly unread: number }> {
  const vtables = new Map<bigint, FutureType>();
  for (const future of context.futures.all) for (const vtable of future.vtables) vtables.set(vtable, future);
  const low = new Set([...vtables.keys()].map((vtable) => Number(vtable & 0xffff_ffffn)));
  const roots = new Map<string, { future: FutureType; address: Addr; references: Addr[] }>();
  let searched = 0;
  let unread = 0;
  for (const region of context.regions) {
    // The word before the first of a chunk is kept, since a pair may straddle two chunks.
    let before: bigint | undefined;
    for (let at = 0; at < region.length; at += CHUNK) {
      const start = addOffset(region.start, at);
      const length = Math.min(CHUNK, region.length - at) & ~(WORD - 1);
      const bytes = length > 0 ? await context.memory.read(start, length) : undefined;
      if (!bytes) {
        unread += length;
        before = undefined;
        continue;
      }
      searched += length;
      const view = new DataView(bytes.buffer, bytes.byteOffset, length);
      for (let offset = 0; offset < length; offset += WORD) {
        if (!low.has(view.getUint32(offset, true))) continue;
        const future = vtables.get(view.getBigUint64(offset, true));
        const pointer = offset > 0 ? view.getBigUint64(offset - WORD, true) : before;
        const place = addOffset(start, offset);
        if (!future || !pointer || pointer % BigInt(future.align ?? 1) !== 0n || isIn(context.dead, place)) continue;
        const address = addr(pointer);
        const known = roots.get(`${address}:${future.typeOffset}`);
        if (known) known.references.push(place);
        else roots.set(`${address}:${future.typeOffset}`, { future, address, references: [place] });
      }
      before = view.getBigUint64(length - WORD, true);
    }
  }
  return { roots: [...roots.values()], searched, unread };
}

function isIn(regions: readonly Region[], address: Addr): boolean {
  return regions.some(({ start, length }) => address >= start && address < start + BigInt(length));
}
