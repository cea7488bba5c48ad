import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { type TableLine, textTable } from '../../../src/trace/events/text-table.js';
import { offCpuTable } from '../../../src/trace/report/off-cpu-table.js';
import { future, nanos } from '../stories.js';

const line = (name: string, file = 'src/main.rs'): TableLine => ({ numbers: ['1'], name, file, line: 7 });
const namesOf = (names: readonly string[], width: number): string[] =>
  textTable(
    ['calls'],
    'task',
    names.map((name) => line(name)),
    { color: false, width },
  )
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((row) => row.trim().split(/ {2,}/)[1] ?? '');

t.test('names that are cut can still be told apart', async (t) => {
  const tasks = ['ticker', 'waiter', 'client'].map((name) => `rt::__${name}_task::__${name}_task_inner_function`);
  t.same(namesOf(tasks, 46), ['…_ticker_task::__ticker…', '…_waiter_task::__waiter…', '…_client_task::__client…']);
  t.same(namesOf(tasks, 90), tasks, 'where there is room they are whole');
  // The end of each says enough.
  const plain = ['level3', 'leaf_io'].map((name) => `labkern::a_long_module::work::${name}`);
  t.match(namesOf(plain, 40), [/^….*work::level3$/, /^….*work::leaf_io$/]);
  const same = 'labkern::a_long_module::work::level3';
  t.match(namesOf([same, same], 40), [/^….*work::level3$/, /^….*work::level3$/]);
});

t.test('who woke a task stands before the place, whatever package that is in', async (t) => {
  const at = { file: '/k/src/main.rs', line: 31, future: 'server', inside: 'tokio::sync::mutex::Mutex::lock' };
  const file = '/home/a/.cargo/registry/src/index-1/embassy-executor-0.10.0/src/raw/waker.rs';
  const client = { key: 1, future: future(1, 'client', 3), address: addr(0x8040_0000n) };
  const hit = { type: 'wake', time: nanos(0), hart: 0, waker: client.address } as const;
  const wake = { ...hit, root: undefined, by: client, caller: { function: 'wake', file, line: 12 } };
  const wokenBy = `client in wake at ${file}:12`;
  const row = { task: 'server', at, wokenBy, wake, waits: 1, total: 5, max: 5, runnable: 2 };
  t.match(
    offCpuTable([row], { color: false, width: 200 }),
    / server at \/k\/src\/main.rs:31, in tokio Mutex::lock {2}client in wake at embassy-executor-0\.10\.0\/src\/raw\/waker\.rs:12\n$/,
  );
});

t.test('columns line up, whatever script names are of', async (t) => {
  // Unicode's TR 11: these are two columns wide (W), an accent that combines takes none.
  const [wide, combined] = ['app::数える', 'app::cafe\u0301'];
  const table = (width: number): string[] =>
    textTable(['calls'], 'function', [line(wide), line(combined), line('app::plain')], { color: false, width })
      .trimEnd()
      .split('\n');
  t.same(
    table(80).map((row) => row.slice(7)),
    ['function     file:line', `${wide}  src/main.rs:7`, `${combined}    src/main.rs:7`, 'app::plain   src/main.rs:7'],
  );
  const long = `app::${'数'.repeat(20)}`;
  const [, row = ''] = textTable(['calls'], 'function', [line(long, 'm.rs')], { color: false, width: 40 }).split('\n');
  t.equal(row, `    1  …${'数'.repeat(10)}  m.rs:7`, 'cut between characters: 21 of 22 columns are used');
  const none = textTable(['calls'], 'name', [{ numbers: ['1'], name: 'a', file: null, line: null }], {
    ...{ color: false, width: 80 },
  });
  t.equal(none, 'calls  name\n    1  a\n', 'no head of places without places');
});
