/*
 * The marks of the C library's allocator (glibc, malloc/malloc.c). A block that it has given begins behind the word
 * with its chunk's size. The chunk behind it says whether this one is in use:
 *
 *   chunk | prev_size | size + flags | what the program has ...          flags: 1 the chunk before is in use, 2 mmapped
 *
 * A small freed block keeps that bit. Its first word then links to another one, and is kept as `link ^ (address >> 12)`
 * (since glibc 2.32).
 */

import { type Addr, addOffset } from '../../base/addr.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import type { Region } from './memory-image.js';

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
