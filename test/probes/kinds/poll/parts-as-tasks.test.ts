import t from 'tap';
import { addr } from '../../../../src/base/addr.js';
import { notAllSeen, partsNote } from '../../../../src/probes/kinds/poll/parts-as-tasks.js';
import type { ProbeFact } from '../../../../src/trace/index.js';

const probe = (name: string, engine: ProbeFact['engine'], extra?: string): ProbeFact => ({
  name,
  address: addr(0),
  engine,
  why: undefined,
  extra,
});
const row = (future: string) => ({ future, instance: `${future}::{async_fn_env#0}` });

t.test(
  'Futures whose polls, inlined or not, were left out; no wakes and drops, and none that was not polled',
  async (t) => {
    const rows = ['k::client', 'k::request', 'k::server'].map(row);
    const found = notAllSeen(rows, [
      probe('k::client', 'target'),
      probe('k::client in executor::poll', 'none'),
      probe('k::request', 'none'),
      probe('k::server', 'stop'),
      probe('k::server', 'none', 'wakes'),
      probe('k::never', 'none'),
    ]);
    t.same(found, ['k::client', 'k::request']);
    t.match(partsNote(found), /^not all polls of k::client and 1 other Future were seen: .* a task of its own\n$/);
    t.match(partsNote(['k::client']), /^not all polls of k::client were seen/);
    t.equal(partsNote([]), '');
  },
);
