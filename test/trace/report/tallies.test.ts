// The heads of histograms tell functions that share a name apart, and counts say where they are lower bounds.

import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { boundTallies, countTable, histogramTexts, type ProbeFact, type TallyRow } from '../../../src/trace/index.js';

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

t.test('where records may be lost, counts without stops are lower bounds', async (t) => {
  const facts = (['target', 'stop', 'none'] as const).map(
    (engine): ProbeFact => ({ name: engine, address: addr(0x1000n), engine, why: undefined }),
  );
  const rows = facts.map(({ name }, i) => ({ ...row(i, name), by: undefined, calls: i }));
  const bounds = (lost: Parameters<typeof boundTallies>[2]) =>
    boundTallies(rows, facts, lost).map(({ isBound = false }) => isBound);
  t.same(bounds({ missing: 0, tailLost: false }), [false, false, true]);
  t.same(bounds({ missing: 1, tailLost: false }), [true, false, true]);
  t.same(bounds({ missing: 0, tailLost: true }), [true, false, true], 'the guest ended with records in its memory');
  const table = countTable(boundTallies(rows, facts, { tailLost: true }), { color: false, width: 200 });
  t.match(table, />=0 {2}target/, 'nobody says that it was not called');
  t.notMatch(table, /not called/);
  t.match(countTable(boundTallies(rows, facts, {}), { color: false, width: 200 }), /1 function was not called/);
});
