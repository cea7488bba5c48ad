// The table of tasks against stories whose truth is known: what each task was polled, and what became of it.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { type TaskRow, TaskSummary, type TraceEvent, taskTable } from '../../../src/trace/index.js';
import { oneTask, root } from '../one-task.js';
import { futures, nanos, returned, type Story, stories, suspend0, tell, unresumed } from '../stories.js';

function summarize(events: readonly TraceEvent[]): TaskRow[] {
  const tasks = new TaskSummary();
  tell(tasks, events);
  assert.equal(tasks.leftOut, 0);
  return tasks.rows();
}

/** Of each task the polls that stand in no other poll of it: number, time in them, the longest, the first. */
function expected({ polls }: Story): object[] {
  const rows = new Map<number, { root: string; polls: number; busy: number; max: number; first: number }>();
  for (const { root, around, begin, end, result } of polls) {
    const row = rows.get(root.key) ?? { root: root.future.instance, polls: 0, busy: 0, max: 0, first: begin };
    rows.set(root.key, row);
    if (around.some((outer) => outer.root === root)) continue;
    const time = end === undefined || result === 'lost' ? 0 : end - begin;
    row.polls++;
    row.busy += time;
    row.max = Math.max(row.max, time);
  }
  return [...rows.values()];
}

t.test('each task of a story has its polls and its time', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(stories, (told) => {
        const rows = summarize(told.events);
        const shown = rows.map((row) => ({
          root: row.instance,
          ...{ polls: row.polls, busy: row.busy_ns, max: row.max_ns, first: row.first_poll_ns },
        }));
        assert.deepEqual(shown, expected(told));
        for (const row of rows) assert.ok(row.busy_ns >= row.max_ns && row.idle_ns >= 0);
      }),
      { seed: 20_26, numRuns: 200 },
    ),
  );
});

t.test('one task: its state, its waits, where it waited', async (t) => {
  const [waiting] = summarize(oneTask.slice(0, 6));
  t.match(waiting, { state: 'waiting', polls: 1, busy_ns: 500, idle_ns: 0, ended_ns: null });
  t.strictSame(waiting?.await, { file: 'src/c.rs', line: 31, inside: 'timer::Sleep' }, 'the innermost await');
  const [running] = summarize(oneTask.slice(0, 7));
  t.match(running, { state: 'running', polls: 2, busy_ns: 500, idle_ns: 4_999_999_623 });
  const [over] = summarize(oneTask);
  t.match(over, { state: 'ready', polls: 2, busy_ns: 1377, max_ns: 877, ended_ns: 5_000_001_000 });
});

t.test('a wake that tells no task may be that of any task without one', (t) => {
  const wake = (of: typeof root | undefined): TraceEvent => ({
    ...{ type: 'wake', time: nanos(600), hart: 1, waker: root.address, root: of, by: undefined },
    caller: { function: undefined, file: undefined, line: undefined },
  });
  const row = (...wakes: TraceEvent[]): TaskRow | undefined => {
    const tasks = new TaskSummary();
    tell(tasks, [...oneTask.slice(0, 6), ...wakes, ...oneTask.slice(6)]);
    return tasks.rows('all')[0];
  };
  t.equal(row()?.wakes, 0, 'none was seen');
  t.equal(row(wake(root))?.wakes, 1);
  const stray = row(wake(undefined));
  t.match(stray, { wakes: null, self_wakes: null, scheduled_ns: null });
  const wide = { color: false, width: 200 };
  const table = taskTable([stray as TaskRow, { ...(row(wake(root)) as TaskRow), number: 2 }], 0, wide);
  t.match(table, /^ +1 .* - +- +- +- /m);
  t.equal(row(wake(undefined), wake(root))?.wakes, 1);
  t.end();
});

const at = (time: number, whose = root) =>
  ({ time: nanos(time), hart: 0, root: whose, future: whose.future, address: whose.address, depth: 0 }) as const;

t.test('memory that another task lies in is of a task that was dropped', async (t) => {
  const begin = { type: 'poll-begin', ...at(0), state: unresumed } as const;
  const other = { key: 8, future: futures[1], address: root.address };
  const next = { type: 'poll-begin', ...at(900, other), state: unresumed } as const;
  const events: TraceEvent[] = [
    begin,
    { type: 'poll-end', ...at(100), begin, began: begin.time, result: 'pending', state: suspend0, chain: [] },
    next,
    { type: 'poll-end', ...at(950, other), begin: next, began: next.time, result: 'ready', state: returned, chain: [] },
  ];
  const [first, second] = summarize(events);
  t.match(first, { number: 1, state: 'dropped', idle_ns: 800, ended_ns: 900, future: 'a' });
  t.match(second, { number: 2, state: 'ready', future: 'b', polls: 1 });
  const lost: TraceEvent[] = [begin, { type: 'poll-lost', ...at(100), begin, began: begin.time }];
  t.match(summarize(lost), [{ state: 'running' }], 'the end of the recording cuts polls off');
  t.match(summarize([...lost, next]), [{ state: 'lost' }, { state: 'running' }]);
});

t.test('a reset ends all tasks, and a gap leaves out who was woken before it', async (t) => {
  const begin = { type: 'poll-begin', ...at(0), state: unresumed } as const;
  const pends = {
    type: 'poll-end',
    ...at(100),
    begin,
    began: begin.time,
    result: 'pending',
    state: suspend0,
    chain: [],
  };
  const other = { key: 8, future: futures[1], address: root.address };
  const next = { type: 'poll-begin', ...at(900, other), state: unresumed } as const;
  const reset = { type: 'reset', time: nanos(400) } as const;
  const [first, second] = summarize([begin, pends as TraceEvent, reset, next]);
  t.match(first, { number: 1, state: 'reset', idle_ns: 300, ended_ns: 400 });
  t.match(second, { number: 2, state: 'running' });
  const wake: TraceEvent = {
    ...{ type: 'wake', time: nanos(200), hart: 1, waker: root.address, root, by: undefined },
    caller: { function: undefined, file: undefined, line: undefined },
  };
  const again = { type: 'poll-begin', ...at(900), state: suspend0 } as const;
  const tasks = new TaskSummary();
  tell(tasks, [begin, pends as TraceEvent, wake, { type: 'gap', from: nanos(300), to: nanos(800) }, again]);
  t.match(tasks.rows('all'), [{ wakes: 1, wake_to_poll_max_ns: null, scheduled_ns: 0 }]);
});

t.test('the table shows the busiest tasks, and tells of the others', async (t) => {
  const many = Array.from({ length: 40 }, (_, i): TraceEvent => {
    const one = { key: i, future: futures[i % 2] ?? futures[0], address: root.address };
    return { type: 'poll-begin', ...at(i, one), state: unresumed };
  });
  const text = taskTable(summarize(many), 3, { color: false, width: 100 });
  const lines = text.trimEnd().split('\n');
  t.equal(lines.length, 13, 'five of each Future');
  t.match(lines[0], /^task +state +polls +busy +longest +idle +future +last await$/);
  t.equal(lines[11], '... and 15 of a, 15 of b that were less busy: --json has them');
  t.equal(lines[12], '3 tasks more that ended have no row');
  t.equal(taskTable([], 0, { color: false, width: 100 }), '');
});
