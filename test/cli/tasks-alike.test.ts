// Tasks that differ in nothing but which they are.
import t from 'tap';
import type { Task } from '../../src/async/tasks/index.js';
import { alike, othersLines } from '../../src/cli/tasks-alike.js';

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
