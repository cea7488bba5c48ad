// Member expressions in conditions, histograms and captures: what they select is what the guest counts itself.

import { execFileSync } from 'node:child_process';
import t, { type Test } from 'tap';
import { launch } from '../../src/index.js';
import { rsptrace } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, type Lab, parseLab, qemuArgv } from './guests/guests.js';

interface Output extends Recording {
  readonly sums: readonly { readonly calls: number; readonly sum: number }[];
  readonly histograms: readonly {
    readonly calls: number;
    readonly buckets: readonly { readonly from: string; readonly calls: number }[];
  }[];
}

async function run(
  t: Test,
  name: string,
  engine: string,
  ...probes: readonly string[]
): Promise<{ readonly output: Output; readonly lab: Lab }> {
  const asked = probes.flatMap((probe) => ['-p', probe]);
  const { stdout, lab } = await runLab(t, name, ['--json', '--engine', engine, ...asked], { file: 'out.txt' });
  return { output: JSON.parse(stdout) as Output, lab };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

/** Calls of poll_task that have nothing left to poll: their task's Future is gone. */
function stale({ stats }: Lab): number {
  const { calls = 0, polls = 0 } = stats.get('poll_task') ?? {};
  return calls - polls;
}

const polled = 'labkern::exec::poll_task';

for (const name of usually(['rv-o0', 'rv-o2', 'x86-o2', 'arm-o2'], (one) => one === 'x86-o2')) {
  t.test(`${name}: a counter in the target is behind references`, async (t) => {
    const [few, number] = [`count:${polled} if t.fut != None && t.polls < 5`, `(t.polls):${polled} if t.fut != None`];
    const counted = await run(t, name, 'target', few, `sum${number}`, `hist${number}`);
    const early = sum(counted.lab.tasks.map(({ polls }) => Math.min(polls, 5)));
    t.equal(counted.output.counts[0]?.calls, early, 'an atomic, and a variant in a niche');
    const polls = counted.lab.tasks.map((task) => task.polls);
    const [all, before] = [sum(polls), sum(polls.map((each) => (each * (each - 1)) / 2))];
    t.match(counted.output.sums, [{ calls: all, sum: before }], 'each poll knows how many there were');
    t.match(counted.output.histograms, [
      { calls: all, buckets: [{ from: 0, below: 1, calls: counted.lab.exec?.spawned }] },
    ]);
    t.equal(counted.output.records, 0, 'counted where it is decided');
    t.ok(counted.output.probes.every((probe) => probe.engine === 'target'));
  });
}

// Each guest by either engine under `--long`: with stops members are captured below.
for (const name of usually(['rv-o0', 'rv-o2', 'x86-o2', 'arm-o2'], (one) => one === 'rv-o2')) {
  for (const engine of usually(['target', 'stop'], (one) => one === 'target')) {
    t.test(`${name}: members behind an Arc decide, engine ${engine}`, async (t) => {
      const probes = [`fn:${polled} if t.fut == None || t.id == 3`, `count:${polled} if t.fut == Option::Some`];
      const { output, lab } = await run(t, name, engine, ...probes, `hist(t.polls):${polled} if t.fut != None`);
      const third = lab.tasks.find(({ id }) => id === 3)?.polls ?? 0;
      t.equal(output.functions[0]?.calls, stale(lab) + third, 'one condition or another');
      t.equal(output.counts[0]?.calls, lab.stats.get('poll_task')?.polls);
      const [histogram] = output.histograms;
      t.equal(histogram?.calls, lab.stats.get('poll_task')?.polls);
      t.equal(histogram?.buckets[0]?.calls, lab.exec?.spawned, 'the first poll of each task');
      t.ok(output.probes.every((probe) => probe.engine === engine));
    });
  }
}

t.test('through several references', async (t) => {
  const nm = execFileSync('riscv64-linux-gnu-nm', ['-C', elfPath('rv-o0')], { encoding: 'utf8', maxBuffer: 64 << 20 });
  const cloned = /^([\da-f]+) .*alloc::task::raw_waker::clone_waker/m.exec(nm)?.[1];
  const poll = '<labkern::futs::YieldN as core::future::future::Future>::poll';
  for (const engine of usually(['target', 'stop'], (one) => one === 'target')) {
    const all = `fn:${poll} if cx.waker.waker.vtable.clone == 0x${cloned} && self.started == false`;
    const none = `count:${poll} if cx.waker.waker.vtable.clone != 0x${cloned}`;
    const each = `count:${poll} if cx.waker.waker.vtable.clone == 0x${cloned}`;
    const { output, lab } = await run(t, 'rv-o0', engine, all, none, each);
    t.equal(output.functions[0]?.calls, lab.stats.get('yield_n')?.calls);
    t.equal(output.counts[0]?.calls, lab.stats.get('yield_n')?.polls, 'of one condition all, of the other none');
    t.ok(output.probes.every((probe) => probe.engine === engine));
  }
});

t.test('what only a stop can read is compared at one, and said', async (t) => {
  for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
    const { lab, output } = await run(t, name, 'auto', `count:${polled} if t.fut != None && t.name[0] == 'c'`);
    const named = lab.tasks.filter((task) => task.name.startsWith('c'));
    t.equal(output.counts[0]?.calls, sum(named.map(({ polls }) => polls)));
    t.match(output.probes, [{ engine: 'stop', why: /'t\.name\[0\]' is compared at a stop: .* how long/ }]);
  }
  const early = await run(t, 'rv-o2', 'auto', `fn:${polled} if t.fut != None && labkern::exec::POLLS < 10`);
  t.equal(early.output.functions[0]?.calls, 10, 'a static');
});

t.test('captures are the members that the guest counts, the same with both engines', async (t) => {
  const name = 'rv-o2';
  for (const engine of usually(['auto', 'stop'] as const, (one) => one === 'auto')) {
    const texts: Uint8Array[] = [];
    const onConsole = (text: Uint8Array): void => void texts.push(Uint8Array.from(text));
    await using target = await launch({ engine, elf: elfPath(name), command: qemuArgv(name), onConsole });
    const seen = new Map<number, number[]>();
    const capture = ['t.id', 't.polls', 't.name.length', 't.queued'];
    const task = target.probe(`fn:${polled} if t.fut != None`, { capture }, ({ values }) => {
      const [id, polls, length, queued] = capture.map((text) => values[text]);
      const known = seen.get(Number(id)) ?? [];
      seen.set(Number(id), [...known, Number(polls)]);
      if (queued !== true) known.push(Number.NaN);
      lengths.set(Number(id), Number(length));
    });
    const lengths = new Map<number, number>();
    await target.run({ duration: '120s' });
    const lab = parseLab(Buffer.concat(texts).toString('latin1'));
    t.equal(task.engine, engine === 'auto' ? 'target' : 'stop');
    t.equal(task.hits, lab.stats.get('poll_task')?.polls);
    for (const { id, name: of, polls } of lab.tasks) {
      t.same(
        seen.get(id),
        Array.from({ length: polls }, (_, index) => index),
        `task ${id}: how often it was polled before`,
      );
      t.equal(lengths.get(id), of.length);
    }
  }
});

t.test('what makes no sense is refused as watch: refuses it', async (t) => {
  for (const [probe, hint] of [
    [`fn:${polled} if t.idd == 3`, /has no member idd \(did you mean id\?/],
    [`fn:${polled} if t.fut == Somme`, /has no variant Somme \(did you mean Some\?/],
    [`fn:${polled} if t.name == 3`, /t\.name is a &str: no integer, bool, char or enum/],
    [`fn:${polled} if t.fut == 3`, /one of its variants \(its variants: None, Some\)/],
    [`fn:${polled} if labkern::exec::POLS > 3`, /nearest: labkern::exec::POLLS/],
    [`fn:${polled} if task == 3`, /it has no argument task \(arguments: t\)/],
    [`hist(t.name):${polled}`, /its t\.name is no integer, but a &str/],
    [`fn:${polled} if t.fut.Some.pointer == 0`, /has no member pointer \(its members: 0\)/],
    ['fn:grow_one if self.inner == 3', /location list has no entry at the function's first instruction/],
  ] as const) {
    const { stdout } = await rsptrace('run', '--json', '--dry-run', '-p', probe, elfPath('rv-o2'), '--', 'false').ended;
    t.match(JSON.parse(stdout), { error: { code: 'PROBE_CONDITION', hint } }, probe);
  }
});
