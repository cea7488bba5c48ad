// The allocator's marks, on a heap laid out by hand as glibc's malloc.c describes it.
import t from 'tap';
import { isFreed } from '../../../src/async/tasks/free-memory.js';
import { type Addr, addOffset, addr } from '../../../src/base/addr.js';
import type { MemoryReader } from '../../../src/base/memory-reader.js';

const START = 0x5555_0000n;
const SIZE = 0x1000;
const heaps = [{ start: addr(START), length: SIZE }];

/** A heap of chunks of 0x40 bytes, all in use; then what is set at offsets. */
function heap(changes: Readonly<Record<number, bigint>> = {}): MemoryReader {
  const bytes = new Uint8Array(SIZE);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < SIZE; at += 0x40) view.setBigUint64(at + 8, 0x41n, true);
  for (const [offset, value] of Object.entries(changes)) view.setBigUint64(Number(offset), value, true);
  return {
    async read(address, length) {
      const offset = Number(address - START);
      return offset >= 0 && offset + length <= SIZE ? bytes.slice(offset, offset + length) : undefined;
    },
  };
}

/** What the program has of the chunk that begins at an offset. */
const block = (chunk: number): Addr => addOffset(addr(START), chunk + 16);

t.test('a block in use', async (t) => {
  t.notOk(await isFreed(heap({ 272: 7n }), heaps, block(0x100)));
  t.notOk(await isFreed(heap(), heaps, addr(0x7fff_0010n)), 'what lies in none of the heaps');
  t.notOk(await isFreed(heap({ 264: 0x42n }), heaps, block(0x100)), 'mapped by itself');
  t.notOk(await isFreed(heap({ 264: 0x1234_5679n }), heaps, block(0x100)), 'no chunk of this heap');
});

t.test('a free chunk: the one behind says so, also if it was joined with the one before', async (t) => {
  t.ok(await isFreed(heap({ 328: 0x40n }), heaps, block(0x100)));
});

t.test('a small freed block links to another one, or to none', async (t) => {
  const own = block(0x100);
  t.ok(await isFreed(heap({ 272: own >> 12n }), heaps, own), 'the last of its list');
  t.ok(await isFreed(heap({ 272: block(0x200) ^ (own >> 12n) }), heaps, own));
  t.notOk(await isFreed(heap({ 272: (block(0x200) + 1n) ^ (own >> 12n) }), heaps, own), 'no block begins there');
});

t.test('a block that was given again, in parts', async (t) => {
  const small = heap({ 264: 0x21n, 296: 0x21n });
  t.notOk(await isFreed(small, heaps, block(0x100), 24), 'it goes on into the chunk behind');
  t.ok(await isFreed(small, heaps, block(0x100), 25));
  t.notOk(await isFreed(heap({ 264: 0x21n, 296: 0x1234_5679n }), heaps, block(0x100), 25), 'no chunk behind it');
});

t.test('what is left of the heap', async (t) => {
  t.ok(await isFreed(heap({ 264: BigInt(SIZE - 0x100) | 1n }), heaps, block(0x100)));
});
