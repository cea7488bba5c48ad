// Wakes against the guest's own count, of both engines; and that each poll but a task's first has an arrow from its wake.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { rsptrace } from '../support/command.js';
import { usually } from '../support/long.js';
import { tracePolls } from '../support/polls.js';
import { children, protoc, readPerfetto } from '../trace/decode-perfetto.js';
import { elfPath, parseLab, qemuArgv } from './guests/guests.js';

/** What tasks are made of: their own polls, without those inside. */
const roots = ['*_task', 'joiner', 'selector', 'sleeper', 'irq_wait', 'consumer', 'producer', 'spawn_all::**'].flatMap(
  (name) => ['-p', `poll:labkern::work::${name}`],
);
const byStops = ['--engine', 'stop', '--wakes', 'always', ...roots];
const runs = [
  ['rv-o2', ['--engine', 'target']],
  ['x86-o2', ['--engine', 'auto']],
  ['rv-o0', ['--engine', 'auto']],
  ['rv-o2', byStops],
  ['x86-o2', byStops],
] as const;
// Each engine on either architecture under `--long`: at a stop a wake is read alike.
for (const [name, options] of usually(runs, ([, [, engine]]) => engine === 'target')) {
  t.test(`${name} ${options.slice(0, 2).join(' ')}: each wake that the guest counted`, async (t) => {
    const { output, console } = await tracePolls(t, name, [], options);
    const { exec, tasks } = parseLab(console);
    const sum = (counts: readonly (number | null)[]): number =>
      counts.reduce<number>((all, one) => all + (one ?? 0), 0);
    t.equal(sum(output.tasks.map(({ wakes }) => wakes)), exec?.wakes);
    t.equal(
      output.tasks.every((row) => !row.wakes_at_least),
      true,
    );

    const { slices } = readPerfetto(children(protoc(readFileSync(output.trace)), 'packet'));
    const wakes = slices.filter(({ category }) => category === 'wake');
    t.equal(wakes.length, exec?.wakes);
    if (!name.endsWith('o0')) {
      const fromInterrupts = wakes.filter(({ args }) => args.function?.startsWith('labkern::exec::timer_tick'));
      t.equal(fromInterrupts.length, exec?.irqWakes, 'the interrupt is known by its handler');
    }
    const polls = new Map(slices.flatMap((slice) => (slice.ended ?? []).map((flow) => [flow, slice] as const)));
    const begun = wakes.filter(({ flows = [] }) => flows.length > 0);
    const arrows = begun.filter(({ flows: [flow = ''] = [] }) => polls.has(flow));
    const idle = begun.filter((wake) => !arrows.includes(wake)).map(({ args }) => args.by);
    t.same(new Set(idle), new Set(['itself']), 'a task that is woken in its last poll is not polled again');
    t.equal(arrows.length, polls.size);
    t.equal(arrows.length, (exec?.polls ?? 0) - tasks.length, 'every poll but the first of a task');
    const times = new Map<string, number[]>();
    for (const { flows: [flow = ''] = [], begin, args } of arrows) {
      const poll = polls.get(flow);
      const { task = '', task_address: address = 0 } = poll?.args ?? {};
      if (args.task !== `${task} @0x${BigInt(address).toString(16)}`)
        t.fail(`${args.task} is woken, ${task} is polled`);
      times.set(args.task ?? '', [...(times.get(args.task ?? '') ?? []), (poll?.begin ?? -1) - begin]);
    }
    for (const row of output.tasks) {
      const known = times.get(`${row.future} @${row.address}`) ?? [];
      t.equal(known.length, row.polls - 1, row.future);
      t.ok(
        known.every((time) => time >= 0),
        'the wake is first',
      );
      t.equal(row.wake_to_poll_max_ns, Math.max(...known));
      t.equal(row.wake_to_poll_avg_ns, Math.round(sum(known) / known.length));
      t.ok((row.scheduled_ns ?? 0) <= row.idle_ns);
    }
  });
}

t.test('--wakes never, and a wrong word', async (t) => {
  const { output } = await tracePolls(t, 'rv-o2', [], ['--wakes', 'never', '-p', 'poll:joiner']);
  t.ok(output.tasks.length > 0 && output.tasks.every(({ wakes, self_wakes }) => wakes === null && self_wakes === null));
  const wrong = await rsptrace('run', '--wakes', 'sometimes', elfPath('rv-o2'), '--', ...qemuArgv('rv-o2')).ended;
  t.equal(wrong.status, 2);
  t.match(wrong.stderr, /wakes.*sometimes|sometimes.*wakes/s);
});

t.test('embassy and async-task: every wake names its task', async (t) => {
  for (const name of usually(['rv-embassy-o0', 'rv-embassy-o3', 'rv-asynctask-o0'], (one) => one === 'rv-embassy-o3')) {
    const { output } = await tracePolls(t, name);
    const { slices } = readPerfetto(children(protoc(readFileSync(output.trace)), 'packet'));
    const wakes = slices.filter(({ category }) => category === 'wake');
    const unnamed = wakes.filter(({ args }) => args.task === undefined);
    t.ok(wakes.length > 100, `${name}: ${wakes.length} wakes`);
    t.same(unnamed, []);
    const polls = slices.filter(({ ended = [] }) => ended.length > 0).length;
    // What nobody wakes is polled once; a task that is cancelled is scheduled without its waker.
    t.equal(
      polls,
      output.tasks.reduce((all, row) => all + row.polls - 1, 0),
      `${name}: every poll but the first`,
    );
  }
});

t.test("rv-faulty: a wake in an interrupt that came in the midst of a poll is not that task's", async (t) => {
  // A poll of the worker lasts eight turns of the timer.
  const machine = ['-icount', 'shift=0', '-device', 'loader,addr=0x86000000,data=1,data-len=4'];
  const options = ['--engine', 'mixed', '-p', 'poll:**', '-p', 'irq:**'];
  const { output, console } = await tracePolls(t, 'rv-faulty', machine, options);
  const { slices } = readPerfetto(children(protoc(readFileSync(output.trace)), 'packet'));
  const wakes = slices.filter(({ category }) => category === 'wake');
  const fromInterrupts = wakes.filter(({ args }) => args.by === 'no task');
  t.equal(fromInterrupts.length, parseLab(console).exec?.irqWakes);
  t.ok(fromInterrupts.every(({ args }) => args.function?.startsWith('faulty::exec::timer_tick')));
  const polls = slices.filter(({ category }) => category === 'poll');
  const isIn = (time: number) => polls.some(({ begin, end = 0 }) => begin < time && time < end);
  t.ok(
    fromInterrupts.some(({ begin }) => isIn(begin)),
    'one was in a poll',
  );
});
