// Release builds whose executors have the polls of tasks inlined into functions that are no Futures: async-task's and embassy's.
// The guests count the polls of their async fns and of their tasks themselves. So do builds for size, with link-time optimisation, and without
// optimisation.

import t, { type Test } from 'tap';
import type { TaskRow } from '../../src/trace/index.js';
import { rsptrace } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';

interface Row {
  readonly future: string;
  readonly instance: string;
  readonly polls: number;
  readonly at_least: boolean;
}
interface Output extends Recording {
  readonly tasks: readonly TaskRow[];
  readonly of_no_task: { readonly polls: number; readonly futures: readonly string[] };
  readonly coverage: {
    readonly exact: number;
    readonly lower_bound: number;
    readonly not: number;
    readonly futures: readonly { readonly future: string; readonly instance: string; readonly seen: string }[];
  };
}

/** What `report --by future --json` has. */
interface Report {
  readonly future: readonly { readonly instance: string; readonly at_least: boolean }[];
  readonly not_seen: readonly string[];
}

/** `LAB stat NAME calls=1 polls=42` and `LAB task 3 NAME polls=24`, summed by name. */
function pollsPrinted(console: string, what: 'stat' | 'task'): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [, name = '', polls] of console.matchAll(new RegExp(`^LAB ${what}(?: \\d+)? (\\w+) .*polls=(\\d+)`, 'gm')))
    sums.set(name, (sums.get(name) ?? 0) + Number(polls));
  return sums;
}

/** The guest's name for a Future: an async fn's own, that of embassy's task, that of the fn around an async block. */
function nameOf(future: string): string | undefined {
  return /::work::(\w+)(?:::\{async_block#0\})?$/.exec(future)?.[1];
}

/** The async fn that a task is made of. */
function taskOf({ instance }: TaskRow): string {
  return /::work::(?:__)?(\w+?)(?:_task)?::/.exec(instance)?.[1] ?? instance;
}

async function recorded(
  t: Test,
  guest: string,
  options: readonly string[],
  machine: readonly string[] = [],
): Promise<{ output: Output; console: string; trace: string }> {
  const { stdout, console, trace } = await runLab(t, guest, ['--json', ...options], { machine });
  return { output: JSON.parse(stdout) as Output, console, trace };
}

// Each guest and each way once; all four under `--long`.
for (const guest of ['rv-asynctask-o3', 'rv-embassy-o3'])
  for (const options of usually([[], ['--exact']], ({ length }) => length > 0 === guest.includes('embassy')))
    t.test(`${guest} ${options.join(' ')}`, async (t) => {
      const { output, console } = await recorded(t, guest, options);
      const { futures, tasks: rows, coverage } = output;
      const [stats, tasks] = [pollsPrinted(console, 'stat'), pollsPrinted(console, 'task')];
      let [exact, bounds] = [0, 0];
      const check = (row: Row, truth: number): void => {
        t.ok(row.at_least ? row.polls <= truth : row.polls === truth, `${row.instance}: ${row.polls} of ${truth}`);
        if (row.at_least) bounds++;
        else exact++;
      };
      const met = new Set<string>();
      for (const row of futures) {
        const name = nameOf(row.future) ?? '';
        const truth = stats.get(name);
        // Two of them are not counted as async fns, only as tasks.
        if (truth !== undefined && truth > 0) check(row, truth);
        met.add(name);
        const task = /::stats::Task<\w+::work::_*(\w+?)(?:_task)?::/.exec(row.instance)?.[1];
        // Of the two sleepers one is an async block around the async fn.
        const polls = task === undefined || task === 'sleeper' ? undefined : tasks.get(task);
        if (polls !== undefined) check(row, polls);
      }
      t.same(
        [...stats.keys()].filter((name) => !met.has(name)),
        [],
        'every async fn has a row',
      );
      t.comment(`${exact} exact, ${bounds} lower bounds`);
      t.ok(exact >= (options.includes('--exact') ? 17 : 11), `${exact} are exact`);
      if (options.includes('--exact')) t.equal(bounds, 0);

      const printed = [...console.matchAll(/^LAB task \d+ (\w+) polls=(\d+)/gm)].map(([, ...words]) => words.join(' '));
      // An async block around the async fn is what the guest spawns of one of the sleepers.
      const told = rows.map((row) => `${taskOf(row).replace('spawn_all', 'sleeper')} ${row.polls}`);
      t.strictSame(told.sort(), printed.sort(), 'a row a task');
      const named = rows.filter(({ name }) => name !== null);
      for (const row of named) t.equal(row.name, taskOf(row), 'as the guest has named it');
      t.ok(guest.includes('embassy') ? named.length >= 5 : named.length === 0, `${named.length} names`);

      const seen = (what: string): number => coverage.futures.filter((each) => each.seen === what).length;
      t.equal(coverage.exact, seen('exact'));
      t.equal(coverage.lower_bound, seen('lower-bound'));
      t.equal(coverage.not, 0, 'none is unseen');
      for (const row of futures) {
        const told = coverage.futures.find(({ instance }) => instance === row.instance)?.seen;
        if (told !== undefined) t.equal(told === 'exact', !row.at_least, `${row.instance} is as it was said to be`);
      }
    });

/** `not`: Futures that these builds do not show. */
const builds = usually(
  [
    { guest: 'rv-asynctask-os', not: 0 },
    { guest: 'rv-asynctask-lto', not: 0 },
    { guest: 'rv-embassy-os', not: 0 },
    { guest: 'rv-embassy-lto', not: 1 },
    { guest: 'x86-asynctask-o0', not: 0 },
    { guest: 'x86-asynctask-o3', not: 0 },
    { guest: 'x86-asynctask-os', not: 0 },
    { guest: 'x86-asynctask-lto', not: 0 },
  ],
  ({ guest }) => ['rv-embassy-lto', 'x86-asynctask-lto'].includes(guest),
);
for (const { guest, not } of builds)
  t.test(`${guest}: no count is wrong, and what is not seen is said`, async (t) => {
    const { output, console, trace } = await recorded(t, guest, []);
    const { futures, coverage, probes } = output;
    const stats = pollsPrinted(console, 'stat');
    const met = new Set<string>();
    for (const { future, instance, polls, at_least: isBound } of futures) {
      const name = nameOf(future) ?? '';
      const truth = stats.get(name);
      if (truth === undefined || truth === 0) continue;
      t.ok(isBound ? polls <= truth : polls === truth, `${instance}: ${isBound ? '>=' : ''}${polls} of ${truth}`);
      met.add(name);
    }
    const report = await rsptrace('report', '--by', 'future', '--json', trace).json<Report>();
    const notSeen = coverage.futures.flatMap(({ seen, future }) => (seen === 'not' ? [future] : []));
    t.same(report.not_seen, notSeen, 'the saved trace says so, too');
    const bounds = new Map(report.future.map((row) => [row.instance, row.at_least]));
    for (const { instance, at_least: isBound } of futures) {
      if (bounds.has(instance)) t.equal(bounds.get(instance), isBound, `${instance} in the saved trace`);
    }
    t.ok(bounds.size > 5);
    const unseen = coverage.futures.filter(({ seen }) => seen === 'not').map(({ future }) => nameOf(future));
    t.same(
      [...stats].filter(([name, polls]) => polls > 0 && !met.has(name) && !unseen.includes(name)),
      [],
      'every async fn has a row, or is said not to be seen',
    );
    t.equal(coverage.not, not);
    const all = coverage.exact + coverage.lower_bound + coverage.not;
    t.ok(coverage.exact >= 0.8 * all, `${coverage.exact} of ${all} exactly`);
    t.same(
      probes.filter(({ engine }) => engine === 'stop'),
      [],
    );
  });

/** Futures of which no task consists, where those around are left out. Before, 61 parts of 10 tasks looked like tasks. */
const onlyInner = ['-p', 'poll:**', '-p', '!poll:**work::**', '-p', '!poll:**stats::Task*'];
/** `stop` leaves out places where a Future around shows the polls. Six tasks of the guest poll `leaf`: by its source. */
for (const { options, tasks: expected } of usually(
  [
    { options: onlyInner, tasks: [] },
    { options: [...onlyInner, '--engine', 'stop'], tasks: [] },
    {
      options: ['-p', 'poll:leaf', '--engine', 'stop'],
      tasks: ['brief', 'joiner', 'locker', 'locker', 'producer', 'selector'],
    },
  ],
  ({ options }) => options === onlyInner,
))
  t.test(
    `rv-embassy-lto ${options.join(' ')}: what is polled inside a Future that is left out is no task`,
    async (t) => {
      // Instructions are its time: how often each task is polled depends on no host.
      const { output, trace } = await recorded(t, 'rv-embassy-lto', options, ['-icount', 'shift=3']);
      const { futures, tasks, of_no_task: parts } = output;
      t.strictSame(tasks.map(taskOf).sort(), expected);
      const polls = futures.reduce((sum, row) => sum + row.polls, 0);
      if (expected.length === 0) {
        t.equal(parts.polls, polls, 'every poll counts for its Future');
        t.strictSame([...parts.futures].sort(), [...new Set(futures.map(({ future }) => future))].sort());
      } else t.ok(parts.polls < polls, `${parts.polls} of ${polls} belong to no known task`);
      const [byTask, byFuture] = await Promise.all(
        ['task', 'future'].map(async (by) => {
          const { stdout } = await rsptrace('report', '--by', by, '--json', trace).ended;
          return (JSON.parse(stdout) as Readonly<Record<string, readonly { readonly calls: number }[]>>)[by] ?? [];
        }),
      );
      t.equal(byTask?.length, expected.length, 'nor is it one in the saved trace');
      t.equal(
        byFuture?.reduce((sum, { calls }) => sum + calls, 0),
        polls,
      );
    },
  );
