// Tasks that differ in nothing but which they are.
import t from 'tap';
import type { Task } from '../../src/async/tasks/index.js';
import { alike, othersLines, withoutWhich } from '../../src/cli/tasks-alike.js';

const task = (id: number, runtime = 'tokio'): Task =>
  ({ runtime, facts: { id }, address: BigInt(id) }) as unknown as Task;

const tree = (id: number, due: string, line = 28): string[] => [
  `shop::serve_one  Suspend2 at src/main.rs:${line}  @0x56476d1fb5${id}8  [tokio: id ${id}, idle, owner 1]`,
  `  waits for a timer (due at ${due} s)`,
  '  waits for room in the channel at 0x5500',
];

t.test('one is shown of those that are alike, and the others are named', async (t) => {
  const all = [
    { task: task(1), lines: tree(1, '10.5') },
    { task: task(2), lines: tree(2, '10.5', 35) },
    { task: task(3), lines: tree(3, '11') },
    { task: task(4), lines: tree(4, '12') },
    { task: task(5, 'block_on'), lines: tree(5, '12') },
  ];
  const groups = alike(all, ({ lines }) => withoutWhich(lines));
  t.same(
    groups.map((group) => [group.shown.lines[0], ...othersLines(group, 80)]),
    [
      [tree(1, '')[0], '  and 2 more like it: tasks 3, 4'],
      [tree(2, '', 35)[0]],
      // What a thread blocks on has no number.
      [tree(5, '')[0]],
    ],
  );
  t.equal(alike(all, () => undefined).length, all.length);
});

t.test('what is waited for is no matter of which task', async (t) => {
  const other = tree(2, '10.5').map((line) => line.replace('0x5500', '0x5508'));
  t.not(withoutWhich(other), withoutWhich(tree(1, '10.5')));
  const many = Array.from({ length: 25 }, (_, i) => ({ task: task(i) }));
  const [group = { others: [] }] = alike(many, () => 'same');
  t.match(othersLines(group, 1000), [/^ {2}and 24 more like it: tasks 1, 2, .*, 20 and 4 more$/]);
});
