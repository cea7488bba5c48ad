import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { Spool } from '../../../../src/trace/formats/speedscope/spool.js';
import { scratchFolder } from '../../../support/command.js';

/** Pairs for so many lists in turn; past 8,128 pairs a list's blocks grow no more. */
function even(length: number, lists: number): [number, number, number][] {
  return Array.from({ length }, (_, i) => [i % lists, i, -i]);
}

t.test('lists that grow side by side come back as they were, also while they grow', async (t) => {
  const folder = scratchFolder(t);
  const pushes = fc.array(fc.tuple(fc.nat({ max: 3 }), fc.integer(), fc.double({ noNaN: true })), { maxLength: 1500 });
  fc.assert(
    fc.property(pushes, (all) => {
      const spool = new Spool(join(folder, 'trace'));
      const lists = [0, 1, 2, 3].map(() => ({ list: spool.list(), wanted: [] as [number, number][] }));
      const compare = (): void => {
        for (const { list, wanted } of lists) {
          const found: [number, number][] = [];
          list.forEach((one, other) => void found.push([one, other]));
          assert.deepEqual(found, wanted);
          assert.equal(list.isEmpty, wanted.length === 0);
        }
      };
      all.forEach(([which, one, other], index) => {
        lists[which]?.list.push(one, other);
        lists[which]?.wanted.push([one, other]);
        if (index % 1500 === 499) compare();
      });
      compare();
      spool.close();
    }),
    { seed: 20_26, numRuns: 50, examples: [[even(1000, 2)], [even(24_000, 2)]] },
  );
  t.same(readdirSync(folder), [], 'the file has no name');
});

t.test('where no file can be made', async (t) => {
  t.throws(() => new Spool('/proc/trace'), {
    code: 'OUTPUT_CANNOT_WRITE',
    message: /beside the trace \/proc\/trace: /,
  });
});
