/*
 * Free memory as the program's own allocator keeps it. Allocators of kernels keep lists of free blocks in these blocks
 * themselves (linked_list_allocator, and most that were written by hand):
 *
 *   static ALLOCATOR: T, which implements GlobalAlloc, leads to     Node { size: usize, next: pointer to Node }
 *
 * The node is the begin of its block. Without a size only the node's own bytes are known to be free.
 */

import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import {
  type Die,
  DW_AT,
  DW_TAG,
  elementCount,
  layoutOf,
  parametersOf,
  sizeOf,
  staticAddress,
  through,
  typeName,
} from '../../dwarf/index.js';
import { firstPointer, membersOf, numberAt, type Part } from './layout.js';
import type { Region } from './memory-image.js';
import type { TaskContext } from './runtime.js';

/** Locks and cells around a list nest so deep at most. */
const MAX_DEPTH = 10;
/** Lists of one allocator, one for each size of blocks. */
const MAX_LISTS = 64;
const MAX_BLOCKS = 200_000;

/** A type of which free blocks are a list. */
interface Node {
  readonly bytes: number;
  /** Where its pointer to the next one is. */
  readonly next: number;
  readonly size: Part | undefined;
}

/** The first pointer of a list, or its first node, from the allocator's address. */
interface Head {
  readonly offset: number;
  readonly node: Node;
  readonly isNode: boolean;
}

/** The free blocks of the program's allocators; none of those of the standard library. */
export async function freeBlocks(context: Pick<TaskContext, 'debug' | 'memory'>): Promise<readonly Region[]> {
  const found: Region[] = [];
  for (const { type, at } of allocators(context))
    for (const head of headsIn(type)) found.push(...(await blocksOf(context, head, addr(at + BigInt(head.offset)))));
  return found;
}

/** The statics whose types implement `GlobalAlloc`. */
function allocators({ debug }: Pick<TaskContext, 'debug'>): { readonly type: Die; readonly at: Addr }[] {
  const types = new Map<string, Die>();
  for (const die of debug.functionsNamed('core::alloc::global::GlobalAlloc::dealloc')) {
    const self = debug.attempt(die.unit, () => {
      // What the first parameter of a method refers to.
      return through(die, (at) => parametersOf(at)[0]?.follow(DW_AT.type)?.follow(DW_AT.type));
    });
    // One without members has nothing to lead to: the standard library's `System`.
    if (self && headsIn(self).length > 0) types.set(typeName(self), self);
  }
  const found = new Map<Addr, { readonly type: Die; readonly at: Addr }>();
  if (types.size === 0) return [];
  debug.walk((cursor) => {
    if (cursor.tag !== DW_TAG.variable || !cursor.has(DW_AT.location)) return;
    const type = cursor.follow(DW_AT.type);
    const known = type && types.get(typeName(type));
    const at = known && staticAddress(cursor.die());
    if (known && at !== undefined) found.set(at, { type: known, at });
  });
  return [...found.values()];
}

function headsIn(type: Die, offset = 0, depth = 0): Head[] {
  if (depth > MAX_DEPTH) return [];
  if (type.tag === DW_TAG.array_type) return headsInArray(type, offset, depth);
  const own = nodeOf(type);
  if (own) return [{ offset, node: own, isNode: true }];
  const node = type.tag === DW_TAG.pointer_type ? nodeOf(type.follow(DW_AT.type)) : undefined;
  if (node) return [{ offset, node, isNode: false }];
  return membersOf(type).flatMap((part) => headsIn(part.type, offset + part.offset, depth + 1));
}

function headsInArray(type: Die, offset: number, depth: number): Head[] {
  const element = type.follow(DW_AT.type);
  const stride = sizeOf(element) ?? 0;
  const count = Math.min(elementCount(type) ?? 0, MAX_LISTS);
  const heads = element && stride > 0 ? headsIn(element, offset, depth + 1) : [];
  return Array.from({ length: heads.length > 0 ? count : 0 }, (_, i) => i).flatMap((i) =>
    heads.map((head) => ({ ...head, offset: head.offset + i * stride })),
  );
}

/** A structure that points to its like, and perhaps says a size. */
function nodeOf(type: Die | undefined): Node | undefined {
  if (type?.tag !== DW_TAG.structure_type) return undefined;
  const { members, variantPart } = layoutOf(type);
  if (variantPart) return undefined;
  let next: number | undefined;
  let size: Part | undefined;
  for (const { name, offset, type: part } of members) {
    const pointer = firstPointer(part);
    if (pointer?.type.offset === type.offset) next = offset + pointer.offset;
    else if (part?.tag === DW_TAG.base_type && name === 'size') size = { offset, size: sizeOf(part) ?? 0, type: part };
  }
  const bytes = sizeOf(type);
  return next === undefined || !bytes ? undefined : { bytes, next, size };
}

async function blocksOf({ memory }: Pick<TaskContext, 'memory'>, head: Head, at: Addr): Promise<Region[]> {
  const { bytes: length, next, size } = head.node;
  const word = async (place: Addr): Promise<bigint> => {
    const bytes = await memory.read(place, 8);
    return bytes ? numberAt(bytes, { offset: 0, size: 8 }) : 0n;
  };
  const found = new Map<bigint, Region>();
  let block = await word(head.isNode ? addr(at + BigInt(next)) : at);
  while (block !== 0n && !found.has(block) && found.size < MAX_BLOCKS) {
    const bytes = await memory.read(addr(block), length);
    if (bytes === undefined) break;
    const free = size ? Number(numberAt(bytes, size)) : length;
    found.set(block, { start: addr(block), length: Math.max(length, free) });
    block = numberAt(bytes, { offset: next, size: 8 });
  }
  return [...found.values()];
}

/*
 * The marks of the C library's allocator (glibc, malloc/malloc.c). A block that it has given begins behind the word
 * with its chunk's size. The chunk behind it says whether this one is in use:
 *
 *   chunk | prev_size | size + flags | what the program has ...          flags: 1 the chunk before is in use, 2 mmapped
 *
 * A small freed block keeps that bit. Its first word then links to another one, and is kept as `link ^ (address >> 12)`
 * (since glibc 2.32).
 */

const FLAGS = 7n;
const PREVIOUS_IN_USE = 1n;
const IS_MMAPPED = 2n;
const HEADER = 16;
/** Blocks begin at such addresses. */
const ALIGNMENT = 16n;
const SMALLEST = 32n;
const LINK_SHIFT = 12n;

/**
 * Whether a block of one of the heaps, which begins at this address, is free, or was given again for something smaller
 * than these bytes. Only what is certain counts.
 */
export async function isFreed(
  memory: MemoryReader,
  heaps: readonly Region[],
  block: Addr,
  bytes = 0,
): Promise<boolean> {
  const heap = heaps.find(({ start, length }) => block > start && block < start + BigInt(length));
  if (heap === undefined || block % ALIGNMENT !== 0n) return false;
  const end = heap.start + BigInt(heap.length);
  const [header, first] = await words(memory, addOffset(block, -8), 2);
  if (header === undefined || first === undefined || (header & IS_MMAPPED) !== 0n) return false;
  const size = header & ~FLAGS;
  const next = block - BigInt(HEADER) + size;
  if (size < SMALLEST || size % ALIGNMENT !== 0n || next > end) return false;
  // The last chunk of a heap is what is left of it.
  if (next + BigInt(HEADER) > end) return true;
  const [behind] = await words(memory, addOffset(block, Number(size) - 8), 1);
  if (behind !== undefined && (behind & PREVIOUS_IN_USE) === 0n) return true;
  // A chunk in use goes on into the first word of the one behind it.
  const after = (behind ?? 0n) & ~FLAGS;
  const isChunk = after >= SMALLEST && after % ALIGNMENT === 0n && next + after <= end;
  if (isChunk && size - BigInt(HEADER / 2) < BigInt(bytes)) return true;
  const link = first ^ (block >> LINK_SHIFT);
  return link === 0n || (link % ALIGNMENT === 0n && link > heap.start && link < end);
}

async function words(memory: MemoryReader, at: Addr, count: number): Promise<(bigint | undefined)[]> {
  const bytes = await memory.read(at, count * 8);
  const view = bytes && new DataView(bytes.buffer, bytes.byteOffset);
  return Array.from({ length: count }, (_, i) => view?.getBigUint64(i * 8, true));
}
