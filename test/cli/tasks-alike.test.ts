// Tasks that differ in nothing but which they are.
import t from 'tap';
import type { FoundTasks } from '../../src/api/index.js';
import type { AwaitNode, Task, Wait } from '../../src/async/tasks/index.js';
import { addr } from '../../src/base/addr.js';
import { alike, othersLines } from '../../src/cli/tasks-alike.js';
import { blockedLines } from '../../src/cli/tasks-blocked.js';
import { refer } from '../../src/cli/tasks-report.js';
import { resourcesOf } from '../../src/cli/top/json.js';

const task = (id: number, runtime = 'tokio'): Task =>
  ({ runtime, facts: { id }, address: BigInt(id) }) as unknown as Task;

t.test('one is shown of those that are alike, and the others are named', async (t) => {
  const all = [
    { task: task(1), key: 'line 28' },
    { task: task(2), key: 'line 35' },
    { task: task(3), key: 'line 28' },
    { task: task(4), key: 'line 28' },
    { task: task(5, 'block_on'), key: 'line 28' },
  ];
  const groups = alike(all, ({ key }) => key);
  t.same(
    groups.map((group) => [group.shown.task, ...othersLines(group, 80)]),
    [
      [task(1), '  and 2 more like it: tasks 3, 4'],
      [task(2)],
      // What a thread blocks on has no number.
      [task(5, 'block_on')],
    ],
  );
  t.equal(alike(all, () => undefined).length, all.length);
});

t.test('the first twenty of many are named', async (t) => {
  const many = Array.from({ length: 25 }, (_, i) => ({ task: task(i) }));
  const [group = { others: [] }] = alike(many, () => 'same');
  t.match(othersLines(group, 1000), [/^ {2}and 24 more like it: tasks 1, 2, .*, 20 and 4 more$/]);
});

interface Link {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly awaits?: readonly AwaitNode[];
}

const node = ({ name, file, line, awaits = [] }: Link): AwaitNode =>
  ({
    ...{ future: { future: name, file, line: 1 }, typeName: name, state: { name: 'Suspend0', file, line } },
    ...{ address: 0n, path: '', maybe: false, cut: undefined, awaits },
  }) as unknown as AwaitNode;

const library = '/h/.cargo/registry/src/index-1/axum-0.8.9/src/serve/mod.rs';

/** A server's task: a library's, in which a handler of the program waits, next to the library's own timer. */
function served(id: number, line: number): { task: Task; waits: Wait<Task>[] } {
  const sleep = node({
    name: 'tokio::time::sleep::Sleep',
    file: '/h/.cargo/registry/src/index-1/tokio-1/x.rs',
    line: 3,
  });
  const own = node({ name: 'shop::find', file: '/shop/src/shop.rs', line, awaits: [sleep] });
  const timeout = node({ name: 'axum::serve::TimeoutFuture', file: library, line: 90 });
  const root = node({ name: 'axum::serve::handle', file: library, line: 389, awaits: [timeout, own] });
  const made = { ...root, runtime: 'tokio', facts: { id } } as unknown as Task;
  const wait = (of: AwaitNode, above: readonly AwaitNode[]): Wait<Task> =>
    ({
      node: of,
      above,
      kind: 'timer',
      detail: undefined,
      how: 'ended by',
      enders: [],
      known: 'all',
    }) as unknown as Wait<Task>;
  return { task: made, waits: [wait(timeout, [root]), wait(sleep, [own, root])] };
}

t.test(
  'who waits: a library that waits by itself is no place in the task, and is shown where that was asked for',
  async (t) => {
    const all = [served(1, 47), served(2, 66), served(3, 47)];
    const found = {
      ...{ tasks: all.map((each) => each.task), blocking: [], blockedIn: () => undefined },
      waits: new Map(all.map((each) => [each.task, each.waits] as const)),
    } as unknown as FoundTasks;
    const short = blockedLines(found);
    t.match(short.lines, [
      /^2 tasks \(shop::find, \/shop\/src\/shop\.rs:47\), each waits .*: tasks 1, 3$/,
      /^task 2 \(shop::find, \/shop\/src\/shop\.rs:66\) waits /,
    ]);
    t.strictSame([short.lines.length, short.left], [2, 3]);
    const full = blockedLines(found, true);
    t.match(full.lines, [
      /^3 tasks \(.*, axum-0\.8\.9\/src\/serve\/mod\.rs:\d+\), each waits .*: tasks 1, 2, 3$/,
      /^2 tasks \(.*shop\.rs:47\).*: tasks 1, 3$/,
      /^task 2 \(.*shop\.rs:66\)/,
    ]);
    t.strictSame([full.lines.length, full.left], [3, 0]);
  },
);

t.test('20,000 tasks that wait for one lock: each is gone through once', (t) => {
  const tasks = Array.from({ length: 20_000 }, (_, id) => ({ facts: { id }, runtime: 'tokio' }) as unknown as Task);
  const holder = tasks.at(-1) as Task;
  const wait = { kind: 'mutex', address: addr(0x1000n), how: 'held by', enders: [{ task: holder }] };
  const waits = new Map(tasks.map((task) => [task, [wait]])) as unknown as FoundTasks['waits'];
  const [lock, ...more] = resourcesOf({ waits });
  t.same([lock?.waiting.length, lock?.by.length, more.length], [tasks.length, 1, 0]);
  const found = { tasks, blocking: [] as Task[] } as unknown as FoundTasks;
  t.same(refer(found, holder), { task: tasks.length - 1, id: tasks.length - 1 });
  t.end();
});
