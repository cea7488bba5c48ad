// The heads of histograms tell functions that share a name apart.

import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { histogramTexts, type TallyRow } from '../../../src/trace/index.js';

function row(key: number, name: string, instance = name): TallyRow {
  const by = { argument: 'duration in ns', counts: [0, key] };
  return {
    function: { key, name, instance, address: addr(BigInt(0x1000 * key)), file: undefined, line: undefined },
    calls: key,
    by,
  };
}

const headsOf = (...rows: TallyRow[]): string[] => histogramTexts(rows).map((text) => text.split(',')[0] ?? '');

t.test('a head has as much of the name as it needs', async (t) => {
  t.same(headsOf(row(1, 'a'), row(2, 'b', 'b::<u8>')), ['a', 'b']);
  t.same(headsOf(row(1, 'a', 'a::<u8>'), row(2, 'a', 'a::<u16>')), ['a::<u8>', 'a::<u16>']);
  t.same(headsOf(row(1, 'a'), row(2, 'a')), ['a at 0x1000', 'a at 0x2000']);
});
