import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { placesIn } from '../../src/base/address-map.js';

t.test('pieces: a place is in one of many, which come in any order', async (t) => {
  const pieces = [40, 10, 0xffff_ffff_8000_0000n, 20].map((at) => ({ address: addr(BigInt(at)), length: 5 }));
  const isIn = placesIn(pieces);
  const places = [9, 10, 14, 15, 19, 20, 24, 25, 39, 44, 45, 0xffff_ffff_8000_0004n, 0xffff_ffff_8000_0005n].map(
    BigInt,
  );
  t.same(
    places.filter(isIn),
    places.filter((at) => pieces.some(({ address, length }) => at >= address && at < address + BigInt(length))),
  );
  t.notOk(placesIn([])(10n));
});
