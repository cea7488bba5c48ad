// A copy of memory, against a copy made by hand; and what it follows into heaps.
import fc from 'fast-check';
import t from 'tap';
import { takeSnapshot } from '../../../src/async/tasks/index.js';
import { merged, within, without } from '../../../src/async/tasks/regions.js';
import { addr } from '../../../src/base/addr.js';
import type { MemoryReader } from '../../../src/base/memory-reader.js';

/** Memory of some pieces; what is not in them cannot be read. */
function memoryOf(...pieces: readonly { readonly start: bigint; readonly bytes: Uint8Array }[]): MemoryReader {
  return {
    async read(address, length) {
      const piece = pieces.find(
        ({ start, bytes }) => address >= start && address + BigInt(length) <= start + BigInt(bytes.length),
      );
      const offset = piece === undefined ? 0 : Number(address - piece.start);
      return piece?.bytes.slice(offset, offset + length);
    },
  };
}

function words(size: number, values: Readonly<Record<number, bigint>>): Uint8Array {
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  for (const [offset, value] of Object.entries(values)) view.setBigUint64(Number(offset), value, true);
  return bytes;
}

t.test('words are found at every aligned place, in every piece', async (t) => {
  const memory = memoryOf(
    { start: 0x1000n, bytes: words(64, { 0: 0x8000_1234n, 56: 0xffff_ffff_8000_1230n }) },
    { start: 0x9000n, bytes: words(64, { 8: 0x8000_1234n, 12: 0n }) },
  );
  const copy = await takeSnapshot(memory, [
    { start: addr(0x1000n), length: 64 },
    { start: addr(0x9000n), length: 64 },
  ]);
  const found = copy.places([0x8000_1234n, 0xffff_ffff_8000_1230n, 5n]);
  t.strictSame(found.get(0x8000_1234n), [0x1000n, 0x9008n]);
  t.strictSame(found.get(0xffff_ffff_8000_1230n), [0x1038n]);
  t.strictSame(found.get(5n), []);
  t.equal(copy.searched, 128);
});

t.test('pieces that cannot be read are counted, and the rest is there', async (t) => {
  const memory = memoryOf({ start: 0x10000n, bytes: words(0x4000, { 16376: 7n }) });
  const copy = await takeSnapshot(memory, [{ start: addr(0x10000n), length: 0x8000 }]);
  t.equal(copy.searched, 0x4000);
  t.equal(copy.unread, 0x4000);
  t.equal((await copy.read(addr(0x13ff8n), 8))?.[0], 7);
  t.equal(await copy.read(addr(0x13ffcn), 8), undefined, 'half of it is not there');
  const other = await takeSnapshot(memory, [], { beyond: memory });
  t.equal((await other.read(addr(0x13ff8n), 8))?.[0], 7, 'what was not copied is read beyond');
  t.equal(await copy.read(addr(0x10000n), 2 ** 40), undefined, 'a size that no memory has');
});

t.test('what is more than fits is counted, of heaps too', async (t) => {
  // Eight words, whatever is asked for: nobody has to copy a GiB.
  const heap = 0x7f00_0000_0000n;
  const read = async (): Promise<Uint8Array> => words(64, { 0: heap, 8: heap + 0x100_0000n });
  const own = { start: addr(0x40_0000n), length: 2 ** 30 - 4096 };
  const copy = await takeSnapshot({ read }, [own], { heaps: [{ start: addr(heap), length: 2 ** 31 }] });
  t.equal(copy.searched, own.length);
  t.equal(copy.unread, 2 * 65_536, 'a piece for each of both words');
});

t.test('stretches as sets of bytes', async () => {
  const region = fc.record({ start: fc.nat(60).map((start) => addr(start)), length: fc.nat(12) });
  const bytes = (regions: readonly { readonly start: bigint; readonly length: number }[]): number[] =>
    regions.flatMap(({ start, length }) => Array.from({ length }, (_, i) => Number(start) + i));
  fc.assert(
    fc.property(fc.array(region), fc.array(region), (some, others) => {
      const [own, theirs] = [merged(some), merged(others)];
      const has = new Set(bytes(others));
      const all = [...new Set(bytes(some))].sort((a, b) => a - b);
      const isSame = (found: number[], wanted: number[]): boolean => found.join() === wanted.join();
      return (
        isSame(bytes(own), all) &&
        isSame(
          bytes(within(own, theirs)),
          all.filter((at) => has.has(at)),
        ) &&
        isSame(
          bytes(without(own, theirs)),
          all.filter((at) => !has.has(at)),
        )
      );
    }),
  );
});

t.test('heaps are followed from word to word, and no further', async (t) => {
  const heap = words(0x100000, { 65544: 0x9005_0010n, 327696: 0x1000n, 589824: 0x9008_0000n });
  const memory = memoryOf(
    { start: 0x1000n, bytes: words(64, { 16: 0x9001_0000n, 24: 0xdead_0000n }) },
    { start: 0x9000_0000n, bytes: heap },
  );
  const copy = await takeSnapshot(memory, [{ start: addr(0x1000n), length: 64 }], {
    heaps: [
      { start: addr(0x9000_0000n), length: 0x100000 },
      { start: addr(0xdead_0000n), length: 0x10000 },
    ],
  });
  t.equal(copy.searched, 64 + 2 * 0x1_0000, 'what the own words lead to, and from there');
  for (const at of [0x1000n, 0x9001_0000n, 0x9005_0000n]) t.ok(await copy.read(addr(at), 8));
  t.equal(copy.unread, 0, 'a word that only looks like an address is no loss');
});

t.test('pointers into ranges, by the start of each', async (t) => {
  const memory = memoryOf({ start: 0x1000n, bytes: words(64, { 0: 0x2008n, 8: 0x2010n, 16: 0x3ff8n, 24: 0x4000n }) });
  const copy = await takeSnapshot(memory, [{ start: addr(0x1000n), length: 64 }]);
  const found = copy.pointersInto([
    { start: addr(0x2000n), end: addr(0x2010n) },
    { start: addr(0x3000n), end: addr(0x5000n) },
  ]);
  t.strictSame(found.get(addr(0x2000n)), [0x1000n]);
  t.strictSame(found.get(addr(0x3000n)), [0x1010n, 0x1018n]);
});

t.test('where the top byte of pointers may be a tag, it leads nowhere else', async (t) => {
  const heap = words(0x100000, { 65544: 0x5a00_0000_9005_0010n });
  const memory = memoryOf(
    { start: 0x1000n, bytes: words(64, { 16: 0x8100_0000_9001_0000n, 24: 0x90ff_0000_9002_0000n }) },
    { start: 0x9000_0000n, bytes: heap },
  );
  const heaps = [{ start: addr(0x9000_0000n), length: 0x100000 }];
  const copy = await takeSnapshot(memory, [{ start: addr(0x1000n), length: 64 }], { heaps, pointerBits: 56 });
  t.equal(copy.searched, 64 + 2 * 0x1_0000);
  t.ok(await copy.read(addr(0x9005_0000n), 8));
  t.strictSame(await copy.read(addr(0x7700_0000_9001_0008n), 8), words(8, { 0: 0x5a00_0000_9005_0010n }));
  const [range] = [...copy.pointersInto([{ start: addr(0x9005_0000n), end: addr(0x9005_1000n) }]).values()];
  t.strictSame(range, [0x9001_0008n]);
  const plain = await takeSnapshot(memory, [{ start: addr(0x1000n), length: 64 }], { heaps });
  t.equal(plain.searched, 64, 'elsewhere all bits count');
});
