// A cycle of waits goes through who is sure to have a lock, not through who may have had it.
import t from 'tap';
import { findDeadlocks } from '../../../src/async/tasks/deadlocks.js';
import type { Wait } from '../../../src/async/tasks/waits.js';

t.test('the cycle that is shown', async (t) => {
  const held = (...enders: readonly { readonly task: string; readonly maybe: boolean }[]): Wait<string>[] => [
    { enders, needs: 'all', known: 'all' } as unknown as Wait<string>,
  ];
  const of = new Map([
    ['reader', held({ task: 'another', maybe: true }, { task: 'writer', maybe: false })],
    ['another', held({ task: 'reader', maybe: false })],
    ['writer', held({ task: 'reader', maybe: false })],
  ]);
  const [found, ...others] = findDeadlocks({ of, open: new Set() });
  t.same(
    found?.cycle.map(({ task }) => task),
    ['reader', 'writer'],
  );
  t.same(found?.behind, ['another']);
  t.equal(others.length, 0);
});
