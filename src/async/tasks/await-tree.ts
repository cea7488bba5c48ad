import { type Addr, addOffset, addr } from '../../base/addr.js';
import { littleEndian } from '../../base/little-endian.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import type { DebugInfo } from '../../dwarf/index.js';
import { ObjectPlace, type Value, Values } from '../../values/index.js';
import {
  extentOf,
  type FutureSet,
  type FutureState,
  type FutureType,
  type LiveFuture,
  liveAt,
  liveFutures,
  type NextBlock,
  stateOf,
} from '../futures/index.js';

/** A Future in memory, and those that it holds: what it awaits, the branches of a join or a select. */
export interface AwaitNode {
  /** Undefined if neither the type nor the vtable says which Future this is. */
  readonly future: FutureType | undefined;
  readonly typeName: string;
  readonly address: Addr;
  /** For compiler-made Futures; also undefined if the state number is none of the type's. */
  readonly state: FutureState | undefined;
  /** How its holder has it: `__awaitee`, or the path of a member (`a.Pending.0`); empty for a root. */
  readonly path: string;
  /** Memory does not show whether it is still there: a local may have been moved out. */
  readonly maybe: boolean;
  /** Why nothing below is known. */
  readonly cut: 'unreadable' | 'cycle' | 'depth' | undefined;
  readonly awaits: readonly AwaitNode[];
}

/**
 * The deepest chain. Chains are as deep as the program nests awaits; boxes can make them longer, damaged memory
 * endless.
 */
const MAX_DEPTH = 256;
/** The most Futures of one tree, and of one slice. */
const MAX_NODES = 10_000;
/** Blocks of memory that pointers of one tree lead to: vectors of vectors whose Futures are done have no nodes. */
const MAX_BLOCKS = 100_000;
/** No Future is larger; a size from a damaged file must not cause endless reading. */
const MAX_BYTES = 1 << 24;

/** How its holder has a Future. */
type Holding = Pick<AwaitNode, 'path' | 'maybe'>;

/** Where a Future lies in a block of memory that was read. */
interface InBlock {
  readonly bytes: Uint8Array;
  /** The block's address. */
  readonly block: Addr;
  readonly offset: number;
}

/**
 * Reads await trees from memory: in place as deep as types nest, and through `Box`, `&mut`, `dyn Future`, `Vec` and
 * lists.
 */
export class AwaitTrees {
  readonly #futures: FutureSet;
  readonly #memory: MemoryReader;
  readonly #open = new Set<string>();
  #left = MAX_NODES;
  #blocks = MAX_BLOCKS;

  constructor(futures: FutureSet, memory: MemoryReader) {
    this.#futures = futures;
    this.#memory = memory;
  }

  /** The tree below the Future of this type at this address. */
  async read(future: FutureType, address: Addr): Promise<AwaitNode> {
    this.#left = MAX_NODES;
    this.#blocks = MAX_BLOCKS;
    return this.#at(future, address, { path: '', maybe: false }, 0);
  }

  async #at(future: FutureType, address: Addr, holding: Holding, depth: number): Promise<AwaitNode> {
    const bytes = future.size > MAX_BYTES ? undefined : await this.#memory.read(address, future.size);
    if (bytes) return this.#inside(future, { bytes, block: address, offset: 0 }, holding, depth);
    return leafOf(future, future.instance, address, holding, 'unreadable');
  }

  async #inside(future: FutureType, at: InBlock, holding: Holding, depth: number): Promise<AwaitNode> {
    const { bytes, block, offset } = at;
    const address = addOffset(block, offset);
    const state = stateOf(future, bytes, offset);
    const node = { future, typeName: future.instance, address, state, ...holding };
    const key = `${address}:${future.typeOffset}`;
    if (this.#open.has(key)) return { ...node, state: undefined, cut: 'cycle', awaits: [] };
    if (depth >= MAX_DEPTH || --this.#left <= 0) return { ...node, cut: 'depth', awaits: [] };
    this.#open.add(key);
    const awaits: AwaitNode[] = [];
    for (const live of liveFutures(future, bytes, offset)) {
      // A local that may have been moved out is shown only if it is suspended; else it is stale.
      for (const inner of await this.#follow(live, bytes, block, depth + 1)) {
        if (!inner.maybe || inner.state?.name.startsWith('Suspend')) awaits.push(inner);
      }
    }
    this.#open.delete(key);
    return { ...node, cut: undefined, awaits: onceEach(awaits) };
  }

  async #follow(
    { held, offset, next }: LiveFuture,
    bytes: Uint8Array,
    block: Addr,
    depth: number,
  ): Promise<AwaitNode[]> {
    const path = held.role === 'awaitee' ? '__awaitee' : held.path;
    if (next !== undefined) return this.#behind({ held, offset, next }, next, path, depth);
    if (offset === undefined) return [];
    const holding = { path, maybe: held.maybe };
    if (held.future) return [await this.#inside(held.future, { bytes, block, offset }, holding, depth)];
    return [leafOf(undefined, held.typeName, addOffset(block, offset), holding)];
  }

  async #behind(live: LiveFuture, next: NextBlock, path: string, depth: number): Promise<AwaitNode[]> {
    const { held } = live;
    const holding = { path, maybe: held.maybe };
    if (held.vtable !== undefined && next.vtable !== undefined && next.hop >= held.hops.length) {
      const concrete = this.#futures.byVtable(next.vtable);
      if (concrete) return [await this.#at(concrete, next.pointer, holding, depth)];
      return [leafOf(undefined, held.typeName, next.pointer, holding)];
    }
    const found: AwaitNode[] = [];
    const stride = next.to.kind === 'slice' ? next.to.stride : 0;
    const count = next.to.kind === 'list' ? MAX_NODES : Math.min(Number(next.count), MAX_NODES);
    let pointer = next.pointer;
    for (let i = 0; i < count && this.#left > 0; i++) {
      // The whole block's size is not known.
      const size = Math.min(MAX_BYTES, extentOf(held, next.hop));
      const length = Math.max(size, next.to.kind === 'list' ? next.to.next + 8 : 0);
      const bytes = this.#blocks-- > 0 ? await this.#memory.read(pointer, length) : undefined;
      if (bytes === undefined) {
        found.push(leafOf(held.future, held.typeName, pointer, holding, this.#blocks < 0 ? 'depth' : 'unreadable'));
        break;
      }
      for (const inner of liveAt(held, bytes, 0, next.hop)) {
        found.push(...(await this.#follow(inner, bytes, pointer, depth)));
      }
      if (next.to.kind === 'list') {
        const link = littleEndian(bytes, next.to.next, 8);
        if (link === 0n) break;
        pointer = addr(link);
      } else pointer = addOffset(pointer, stride);
    }
    return found;
  }
}

/** One of which nothing was read. */
export function leafOf(
  future: FutureType | undefined,
  typeName: string,
  address: Addr,
  holding: Holding = { path: '', maybe: false },
  cut?: AwaitNode['cut'],
): AwaitNode {
  return { future, typeName, address, state: undefined, ...holding, cut, awaits: [] };
}

/**
 * The branches of a `select!` are variables, and the closure that polls them refers to them: they are shown there. Of
 * two ways that lead to one Future, as an awaited reference and the variable that it refers to, the surer one is shown.
 */
function onceEach(awaits: readonly AwaitNode[]): readonly AwaitNode[] {
  const below = new Set<string>();
  const keyOf = ({ address, typeName }: AwaitNode): string => `${address}:${typeName}`;
  const note = (node: AwaitNode): void => {
    for (const inner of node.awaits) {
      if (inner.cut === undefined) below.add(keyOf(inner));
      note(inner);
    }
  };
  awaits.forEach(note);
  const first = new Map<string, AwaitNode>();
  for (const node of awaits) if (first.get(keyOf(node))?.maybe ?? true) first.set(keyOf(node), node);
  // Those without bytes may share an address.
  const isOther = (node: AwaitNode): boolean => node.future?.size === 0 || first.get(keyOf(node)) === node;
  return awaits.filter((node) => !below.has(keyOf(node)) && isOther(node));
}

export interface FutureLocal {
  readonly name: string;
  readonly value: Value;
}

/** What a Future keeps in its present state: the locals saved across the await, or a hand-written Future's fields. */
export class FutureFields {
  readonly #debug: DebugInfo;
  readonly #values: Values;

  constructor(debug: DebugInfo, memory: MemoryReader) {
    this.#debug = debug;
    this.#values = new Values(debug, memory);
  }

  /** By name, without what it awaits, which the tree shows. Empty if nothing is known about the type. */
  async of({ future, address, awaits }: AwaitNode): Promise<FutureLocal[]> {
    const die = future && this.#debug.die(future.typeOffset);
    if (!die) return [];
    const value = await this.#values.read(die, ObjectPlace.memory(address));
    if (value.kind !== 'struct') return [];
    const shown = new Set(['__awaitee', ...awaits.map(({ path }) => path.split('.')[0])]);
    // An argument is listed twice in a state: its new place, and at the end its captured copy, now stale.
    return value.fields.filter(({ name }) => !shown.has(name) && shown.add(name));
  }
}
