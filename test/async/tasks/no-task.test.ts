import t from 'tap';
import type { FutureType } from '../../../src/async/futures/index.js';
import { noTask } from '../../../src/async/tasks/find-tasks.js';
import { runtimes, search } from '../../../src/async/tasks/runtimes/index.js';

const future = (...vtables: bigint[]) => ({ vtables }) as unknown as FutureType;
const some = { asked: [...runtimes, search], used: ['search'], others: 0, notes: [] };

t.test('why there is no task, by what the program has', async (t) => {
  const why = (all: FutureType[], more: Partial<Parameters<typeof noTask>[1]>) =>
    noTask({ all }, { ...some, ...more }).why;
  t.match(why([future()], {}), /uses no runtime that is known and boxes none as dyn Future/);
  t.match(why([future(1n), future(2n), future()], {}), /none of the 2 kinds of Futures that it boxes/);
  t.match(why([future(1n)], { others: 3 }), /nothing that lives leads to/);
  t.match(why([], {}), /no Future/);
  t.match(why([future()], { used: ['tokio', 'search'] }), /^tokio has none alive/);
  t.match(why([future()], { used: ['tokio', 'embassy'] }), /^tokio and embassy have none alive/);
  // It may have some that nothing could find.
  const notes = ['tokio: `Cell` is not in the debug info, so its tasks cannot be listed'];
  t.match(why([future()], { used: ['tokio', 'search'], notes }), /^debug info about tokio is missing/);
  const [tokio] = runtimes;
  t.match(why([future()], { asked: tokio ? [tokio] : [], used: [] }), /does not use tokio/);
});
