import t from 'tap';
import { findFutures } from '../../../../src/async/futures/index.js';
import { addr } from '../../../../src/base/addr.js';
import { DebugInfo } from '../../../../src/dwarf/index.js';
import { ElfFile } from '../../../../src/elf/index.js';
import { notAllSeen, partsNote, unseenAround } from '../../../../src/probes/kinds/poll/coverage-report.js';
import type { ProbeFact } from '../../../../src/trace/index.js';
import { elfPath } from '../../../qemu/guests/guests.js';

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
      { ...probe('k::client in executor::poll', 'none'), subject: 'k::client' },
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

t.test('Futures that are not all seen, around what has a row as a task', async (t) => {
  const futures = findFutures(DebugInfo.load(await ElfFile.open(elfPath('rv-o2'))));
  const named = (name: string) => {
    const found = futures.all.find(({ future }) => future === `labkern::work::${name}`);
    if (!found) throw new Error(`the guest has no ${name}`);
    return found;
  };
  const seen = (name: string, how: 'exact' | 'not' | 'lower-bound' | 'no-code') =>
    ({ future: named(name), seen: how, reason: undefined, help: undefined }) as const;
  const rows = (runtime: string | null) => [{ instance: named('level3').instance, runtime }];
  // In the guest's source level1 awaits level2, and that level3.
  t.same(unseenAround(futures, [seen('level1', 'not'), seen('level2', 'exact')], rows(null)), [
    'labkern::work::level1',
  ]);
  t.same(unseenAround(futures, [seen('level2', 'lower-bound')], rows(null)), ['labkern::work::level2']);
  t.same(unseenAround(futures, [seen('leaf_io', 'not'), seen('level2', 'no-code')], rows(null)), [], 'it is inside');
  t.same(unseenAround(futures, [seen('level1', 'not')], rows('tokio')), [], 'the runtime knows that it is a task');
});
