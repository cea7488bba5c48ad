import t from 'tap';
import { addr } from '../../../../src/base/addr.js';
import { readChrome } from '../../decode-chrome.js';
import { oneTask } from '../../one-task.js';
import { nanos } from '../../stories.js';
import { parse, write } from '../../written.js';

t.test('a Chrome trace says what happened to one task', async (t) => {
  const records = parse(write('one.json', oneTask));
  t.same(
    records.filter(({ ph }) => ph === 'M').map(({ name, pid, tid, args }) => [name, pid, tid, args]),
    [
      ['process_name', 1, 0, { name: 'labkern' }],
      ['process_labels', 1, 0, { labels: 'riscv64, guest clock riscv-time' }],
      ['thread_name', 1, 1, { name: 'hart 0' }],
      ['thread_sort_index', 1, 1, { sort_index: 0 }],
      ['thread_name', 1, 2, { name: 'hart 1' }],
      ['thread_sort_index', 1, 2, { sort_index: 1 }],
      ['thread_name', 1, 3, { name: 'hart 2' }],
      ['thread_sort_index', 1, 3, { sort_index: 2 }],
    ],
  );
  const slices = readChrome(records);
  const of = (track: string) =>
    slices.filter((slice) => slice.track === track).map(({ name, begin, end, depth }) => [name, begin, end, depth]);
  t.same(of('tid 1'), [
    ['rsptrace', 0, 0, 0],
    ['a', 0, 500, 0],
    ['b', 200, 400, 1],
  ]);
  t.same(of('tid 3'), [['a', 5_000_000_123, 5_000_001_000, 0]]);
  t.same(of('future 0x7'), [
    ['a @0xffffffff80412340', 0, 5_000_001_000, 0],
    ['a', 0, 500, 1],
    ['a: Suspend0', 100, 100, 2],
    ['b', 200, 400, 2],
    ['c::d', 300, 300, 3],
    ['waiting at src/c.rs:31, in timer Sleep', 500, 5_000_000_123, 1],
    ['a', 5_000_000_123, 5_000_001_000, 1],
  ]);
  t.same(slices.find(({ track, name }) => track === 'tid 1' && name === 'a')?.args, {
    future: 'a::{async_fn_env#0}',
    at: 'src/a.rs:10',
    task: 'a @0xffffffff80412340',
    address: '0xffffffff80412340',
    result: 'pending',
  });
  t.same(slices.find(({ track, name }) => track === 'future 0x7' && name === 'a')?.args, {
    future: 'a::{async_fn_env#0}',
    address: '0xffffffff80412340',
    at: 'src/a.rs:10',
    state_before: 'Unresumed',
    result: 'pending',
    state_after: 'Suspend0 at src/a.rs:12',
    await_chain: 'b at src/b.rs:25 > c::d at src/c.rs:31 > timer::Sleep (Unresumed) > timer::Timer',
  });
});

t.test('a category of another program is any text', async (t) => {
  const by = { function: undefined, file: undefined, line: undefined };
  const place = { key: 0, name: 'x', category: 'a"b\\', address: addr(1n), by };
  const records = parse(write('category.json', [{ type: 'place', time: nanos(5), hart: 0, place }]));
  t.equal(records.find(({ name }) => name === 'x')?.cat, place.category);
});
