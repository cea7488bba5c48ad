// `count:GLOB by task` and `by hart`, and sums of kernels: the guest's own counts of each task's polls, and what a whole trace of the same guest has.

import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { rsptrace } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { children, protoc, readPerfetto, type Slice } from '../trace/decode-perfetto.js';
import { elfPath } from './guests/guests.js';

interface Grouped {
  readonly function: string;
  readonly calls: number;
  readonly sum?: number | string;
  readonly avg?: number | null;
  readonly hart?: number;
  readonly task?: { readonly future: string; readonly address: string } | null;
}

interface Output extends Recording {
  readonly counts: readonly Grouped[];
  readonly sums: readonly Grouped[];
  readonly averages: readonly Grouped[];
  readonly histograms: readonly (Grouped & { readonly argument: string })[];
}

const deep = 'labkern::work::deep';

const run = (t: Test, name: string, ...words: readonly string[]) => runLab(t, name, words);

const probed = (...probes: readonly string[]): string[] => probes.flatMap((one) => ['-p', one]);
const sorted = (counts: readonly number[]): number[] => [...counts].sort((a, b) => a - b);

const ways = [
  ['rv-o2', 'target'],
  ['x86-o2', 'target'],
  ['rvm-o2', 'stop'],
] as const;
for (const [name, engine] of usually(ways, ([name]) => name === 'x86-o2'))
  t.test(`${name}, --engine ${engine}: a row a task`, async (t) => {
    const polled = 'count:labkern::work::chain_task::{async_fn#0} by task';
    const probes = probed('poll:labkern::work::chain_task', polled, `count:${deep}0 by task`, `count:${deep}1 by hart`);
    const { stdout, lab } = await run(t, name, '--json', '--engine', engine, ...probes);
    const { counts, missing } = JSON.parse(stdout) as Output;
    t.equal(missing, 0);
    const chain = counts.filter((row) => row.function.includes('chain_task'));
    t.ok(chain.length > 1 && chain.every(({ task }) => task?.future.includes('chain_task')));
    t.equal(new Set(chain.map(({ task }) => task?.address)).size, chain.length, 'each is a task of its own');
    const own = lab.tasks.filter((task) => task.name === 'chain').map(({ polls }) => polls);
    t.strictSame(sorted(chain.map(({ calls }) => calls)), sorted(own), 'polls of each, by the guest');
    const total = (fn: string): number =>
      counts.filter((row) => row.function === fn).reduce((sum, { calls }) => sum + calls, 0);
    t.equal(total(`${deep}0`), lab.stats.get('deep_calls')?.calls, 'all tasks together');
    t.same(
      counts.filter((row) => row.function === `${deep}1`).map(({ hart, calls }) => [hart, calls]),
      [[0, lab.stats.get('deep_calls')?.calls]],
    );
  });

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2'))
  t.test(`${name}: sums, averages and histograms of a kernel`, async (t) => {
    const whole = await run(t, name, ...probed(`fn:${deep}6`));
    const { slices } = readPerfetto(children(protoc(readFileSync(whole.trace)), 'packet'));
    const xs = slices.filter((slice: Slice) => slice.name === `${deep}6`).map(({ args }) => BigInt(args.arg_x ?? -1));
    const sum = xs.reduce((all, x) => all + x, 0n);
    const probes = probed(`sum(x):${deep}6`, `avg(x):${deep}6`, `hist(duration):${deep}6`, `sum(x):${deep}6 by task`);
    const { stdout, lab } = await run(
      t,
      name,
      '--json',
      '--engine',
      'target',
      ...probes,
      '-p',
      'poll:labkern::work::*_task',
    );
    const { sums, averages, histograms } = JSON.parse(stdout) as Output;
    const calls = lab.stats.get('deep_calls')?.calls;
    t.equal(xs.length, calls);
    const [plain, ...grouped] = sums
      .filter(({ task }) => task === undefined)
      .concat(sums.filter(({ task }) => task !== undefined));
    t.equal(BigInt(plain?.sum ?? -1), sum);
    t.equal(plain?.calls, calls);
    t.equal(
      grouped.reduce((all, row) => all + BigInt(row.sum ?? 0), 0n),
      sum,
      'the rows of all tasks are the whole',
    );
    t.ok(grouped.length > 0);
    const average = Number(sum) / xs.length;
    t.ok(Math.abs((averages[0]?.avg ?? 0) - average) <= 1e-9 * average, `${averages[0]?.avg} for ${average}`);
    t.match(histograms, [{ argument: 'duration in ns', calls }]);
    const inTarget = await run(
      t,
      name,
      '--json',
      '--engine',
      'target',
      ...probed(`sum(x):${deep}6`, `avg(x):${deep}6`),
    );
    const { records, ...alone } = JSON.parse(inTarget.stdout) as Output;
    t.same([records, BigInt(alone.sums[0]?.sum ?? -1)], [0, sum], 'added up in the target');
    t.equal(alone.averages[0]?.avg, averages[0]?.avg);
  });

t.test('the table', async (t) => {
  const probes = probed('poll:labkern::work::fib_task', `count:${deep}0 by task`);
  const { stdout, lab } = await run(t, 'rv-o2', ...probes);
  const calls = lab.stats.get('deep_calls')?.calls;
  t.match(stdout, new RegExp(`^ *${calls}  ${deep}0, \\(no task\\)`, 'm'), 'polls of other tasks are not known');
});

t.test('wrong groups', async (t) => {
  for (const [probe, message] of [
    ['count:a by future', /groups by 'future', which is no task, hart or thread \[PROBE_SYNTAX\]/],
    ['count:a by task', /needs polls: without them nothing says which task runs \[PROBE_SYNTAX\]\n {2}add --probe/],
    ['!count:a by hart', /leaves out what matches, so that there is nothing to group \[PROBE_SYNTAX\]/],
  ] as const) {
    const ran = await rsptrace('-r', ':1', '-p', probe, elfPath('rv-o2')).ended;
    t.equal(ran.status, 2, probe);
    t.match(ran.stderr, message);
  }
});
