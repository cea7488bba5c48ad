// Writes that are joined change the same bytes as one by one, and no byte outside our own memory; against a plain array as memory.
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { joined } from '../../src/inject/transfers.js';

const memorySize = 4096;
const alignment = 16;

t.test('joined writes leave memory as the single ones do', async (t) => {
  let fewer = 0;
  const lengths = fc.array(fc.tuple(fc.integer({ min: 1, max: 80 }), fc.boolean()), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(lengths, fc.integer({ min: 0, max: memorySize }), (pieces, border) => {
      // Two pieces of ours with something foreign between them, in which each write is begun at a multiple of 16.
      const own = [
        { address: addr(0), length: Math.max(border - alignment, 0) },
        { address: addr(border), length: memorySize - border },
      ];
      const writes: { address: ReturnType<typeof addr>; bytes: Uint8Array }[] = [];
      let at = 0;
      for (const [length, skips] of pieces) {
        if (skips) at += 8 * alignment;
        const [first] = own as [(typeof own)[number]];
        if (at < border && at + length > first.length) at = Math.ceil(border / alignment) * alignment;
        if (at + length > memorySize) break;
        writes.push({ address: addr(at), bytes: new Uint8Array(length).fill(1 + (at % 255)) });
        at = Math.ceil((at + length) / alignment) * alignment;
      }
      const [single, together] = [0, 0].map(() => new Uint8Array(memorySize)) as [Uint8Array, Uint8Array];
      const touched = new Set<number>();
      for (const { address, bytes } of writes) single.set(bytes, Number(address));
      const few = joined(writes.toReversed(), own);
      for (const { address, bytes } of few) {
        together.set(bytes, Number(address));
        for (let i = 0; i < bytes.length; i++) touched.add(Number(address) + i);
      }
      if (Buffer.compare(single, together) !== 0) throw new Error('other bytes');
      for (const place of touched) {
        const isOwn = own.some(({ address, length }) => place >= Number(address) && place < Number(address) + length);
        if (!isOwn) throw new Error(`${place} is not ours`);
      }
      fewer += writes.length - few.length;
    }),
    { numRuns: 500, seed: 22 },
  );
  t.ok(fewer > 1000, `${fewer} packets less`);
});

t.test('writes far from each other, and those outside, stay single', async (t) => {
  const write = (at: number) => ({ address: addr(at), bytes: Uint8Array.of(1, 2, 3, 4) });
  const own = [{ address: addr(0x1000), length: 0x1000 }];
  t.equal(joined([write(0x1000), write(0x1010), write(0x1020)], own).length, 1);
  t.equal(joined([write(0x1000), write(0x1040)], own).length, 2);
  t.equal(joined([write(0x3000), write(0x3004)], own).length, 2, 'code of the program');
  t.equal(joined([write(0xffc), write(0x1000)], own).length, 2);
});
