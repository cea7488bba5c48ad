import fc from 'fast-check';
import t from 'tap';
import { littleEndian, littleEndianBytes } from '../../src/base/little-endian.js';

t.test('bytes are the number, of any size', async (t) => {
  fc.assert(
    fc.property(fc.bigInt(-(1n << 160n), 1n << 160n), fc.nat(20), fc.nat(5), (value, size, before) => {
      const bytes = littleEndianBytes(value, size);
      const text = Buffer.from(bytes).reverse().toString('hex');
      const inside = Uint8Array.from([...new Uint8Array(before).fill(7), ...bytes, 9]);
      const wanted = BigInt.asUintN(8 * size, value);
      return BigInt(`0x0${text}`) === wanted && bytes.length === size && littleEndian(inside, before, size) === wanted;
    }),
    { seed: 4, numRuns: 500 },
  );
  t.same(littleEndianBytes(1n, 16), Uint8Array.from([1, ...new Uint8Array(15)]));
});

t.test('bytes behind the end are zero', async (t) => {
  const bytes = Uint8Array.from([1, 2, 3]);
  t.equal(littleEndian(bytes), 0x030201n);
  for (const size of [4, 8, 9, 16]) t.equal(littleEndian(bytes, 1, size), 0x0302n);
  for (const size of [8, 16]) t.equal(littleEndian(bytes, 3, size), 0n);
});
