// Ordinary functions through the real command: calls against the guest's own counters, nesting, limits.
// More guests, of the same modes, and every function at once, under `scripts/test --long`.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { long, usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { children, protoc, readPerfetto, type Slice } from '../trace/decode-perfetto.js';
import { elfPath, type Lab } from './guests/guests.js';

interface Output extends Recording {
  readonly leak?: { readonly stops: number };
}

interface Ran {
  readonly output: Output;
  readonly lab: Lab;
  slices(): Slice[];
}

async function run(t: Test, name: string, ...options: string[]): Promise<Ran> {
  const { stdout, lab, trace } = await runLab(t, name, ['--json', ...options]);
  const output = JSON.parse(stdout) as Output;
  const slices = () =>
    readPerfetto(children(protoc(readFileSync(trace)), 'packet')).slices.filter(({ kind }) => kind === 'slice');
  return { output, lab, slices };
}

const calls = (output: Output, name: string): number =>
  output.functions.filter((row) => row.function === name).reduce((sum, row) => sum + row.calls, 0);

/** On one track each slice lies inside the one around it, in time and in depth; siblings do not overlap. */
function checkNesting(t: Test, slices: readonly Slice[]): void {
  const open = new Map<string, Slice[]>();
  let wrong = 0;
  for (const slice of slices) {
    const stack = open.get(slice.track) ?? [];
    open.set(slice.track, stack);
    stack.length = slice.depth;
    const outer = stack.at(-1);
    const end = slice.end ?? Number.POSITIVE_INFINITY;
    if (outer && (slice.begin < outer.begin || end > (outer.end ?? Number.POSITIVE_INFINITY))) wrong++;
    stack.push(slice);
  }
  t.equal(wrong, 0, `${slices.length} slices nest`);
}

/** The slices right inside each other, by name. */
function callers(slices: readonly Slice[], name: string): Set<string | undefined> {
  const found = new Set<string | undefined>();
  const open: Slice[] = [];
  for (const slice of slices) {
    open.length = slice.depth;
    if (slice.name === name) found.add(open.at(-1)?.name);
    open.push(slice);
  }
  return found;
}

const guests = ['rv-o0', 'rv-o2', 'rvm-o2', 'x86-o0', 'x86-o2', 'arm-o0', 'arm-o2'];
for (const name of usually(guests, (one) => one === 'rv-o0' || one === 'x86-o2' || one === 'arm-o2')) {
  t.test(`${name}: functions are called as often as the guest counts`, async (t) => {
    // The timer's handler is traced in a test of its own: each tick that stops ask for would be recorded here too.
    const probes = ['deep*', '__rust_alloc', '__rust_dealloc', 'labkern::exec::poll_task', 'labkern::stats::report'];
    const { output, lab, ...ran } = await run(t, name, ...probes.flatMap((glob) => ['-p', `fn:${glob}`]));
    const slices = ran.slices();
    t.equal(output.end, 'guest-ended');
    t.strictSame(output.futures, [], 'no polls where only functions are asked for');
    for (let i = 0; i < 8; i++) {
      t.equal(calls(output, `labkern::work::deep${i}`), lab.stats.get('deep_calls')?.calls, `deep${i}`);
    }
    t.equal(calls(output, 'labkern::stats::report'), 1);
    t.equal(calls(output, 'labkern::exec::poll_task'), lab.stats.get('poll_task')?.calls, 'poll_task');
    for (const row of output.functions) {
      t.equal(row.lost, 0, row.function);
      t.ok(row.self_ns <= row.total_ns && row.max_ns <= row.total_ns && row.avg_ns <= row.max_ns, row.function);
    }
    checkNesting(t, slices);
    for (let i = 1; i < 8; i++) {
      t.strictSame([...callers(slices, `labkern::work::deep${i}`)], [`labkern::work::deep${i - 1}`]);
    }
    const deep0 = slices.filter((slice) => slice.name === 'labkern::work::deep0');
    // deepN(x, y) calls deepN+1(x + 1, y ^ x) and returns one more than that.
    for (const slice of slices.filter((one) => /deep[0-6]$/.test(one.name))) {
      const inner = slices[slices.indexOf(slice) + 1];
      const [x, y] = [BigInt(slice.args.arg_x ?? 0), BigInt(slice.args.arg_y ?? 0)];
      const agrees =
        inner?.args.arg_x === String(x + 1n) &&
        inner.args.arg_y === String(x ^ y) &&
        BigInt(slice.args.returned ?? 0) === BigInt(inner.args.returned ?? 0) + 1n;
      if (!agrees) t.fail(`${slice.name}: ${JSON.stringify([slice.args, inner?.args])}`);
    }
    t.equal(deep0.length, lab.stats.get('deep_calls')?.calls);
  });
}

t.test(
  'rv-o0: the bodies of async fns are functions as well, and polls at the same places are around them',
  async (t) => {
    const names = ['level3', 'chain_task', 'fib_box'].map((name) => `labkern::work::${name}`);
    const polls = names.flatMap((name) => ['-p', `poll:${name}`, '-p', `poll:${name}::**`]);
    const functions = names.flatMap((name) => ['-p', `fn:${name}`, '-p', `fn:${name}::**`]);
    const both = await run(t, 'rv-o0', ...functions, ...polls);
    const { output, lab, slices } = both;
    for (const name of ['level3', 'chain_task']) {
      const counted = lab.stats.get(name)?.polls;
      t.equal(calls(output, `labkern::work::${name}::{async_fn#0}`), counted, `${name}: calls of its body`);
      const polls = output.futures.filter((row) => row.future === `labkern::work::${name}`);
      t.equal(
        polls.reduce((sum, row) => sum + row.polls, 0),
        counted,
        `${name}: polls`,
      );
      t.equal(
        calls(output, `labkern::work::${name}`),
        lab.stats.get(name)?.calls,
        `${name}: the function that makes the Future`,
      );
    }
    const fib = lab.stats.get('fib_box');
    t.equal(calls(output, 'labkern::work::fib_box'), fib?.calls);
    t.equal(calls(output, 'labkern::work::fib_box::{async_block#0}'), fib?.polls);
    const harts = slices().filter(({ category }) => category === 'call' || category === 'poll');
    const onHart = harts.filter(({ track }) => track === harts.find(({ category }) => category === 'call')?.track);
    checkNesting(t, onHart);
    t.strictSame([...callers(onHart, 'labkern::work::level3::{async_fn#0}')], ['labkern::work::level3']);
    // Each poll is recorded as it is without functions: all of them, beside those that the guest counts.
    if (!long) return;
    const alone = await run(t, 'rv-o0', ...polls);
    const counts = ({ output }: Ran) =>
      output.futures
        .filter((row) => row.future !== 'labkern::work::irq_wait')
        .map(({ instance, polls, ready, pending, derived }) => [instance, polls, ready, pending, derived]);
    t.strictSame(counts(both), counts(alone));
  },
);

// By default test/qemu/equal-kernels.test.ts has a guest with a probe at each function.
for (const name of usually(['rv-o2', 'x86-o2'], () => false)) {
  t.test(`${name}: every function at once`, async (t) => {
    const { output, lab, slices } = await run(t, name, '-p', 'fn:**', '-p', '!fn:**timer_tick');
    t.ok(output.functions.length > 80, `${output.functions.length} functions were called`);
    t.equal(calls(output, 'labkern::work::deep7'), lab.stats.get('deep_calls')?.calls);
    checkNesting(t, slices());
    const lost = output.functions.filter((row) => row.lost > 0).map((row) => row.function);
    t.strictSame(lost, ['labkern::arch::shutdown', 'labkern::rust_main'], 'only what never returns');
    t.equal(calls(output, 'labkern::rust_main'), 1);
  });
}

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: an interrupt handler, on top of what it interrupts`, async (t) => {
    const probes = ['**timer_tick', 'labkern::exec::run', 'labkern::stats::report'];
    const { output, lab, ...ran } = await run(t, name, ...probes.flatMap((glob) => ['-p', `fn:${glob}`]));
    const slices = ran.slices();
    // The guest prints its count in the middle of the report, and ticks on.
    const report = slices.find((slice) => slice.name === 'labkern::stats::report')?.begin ?? 0;
    const ticks = slices.filter((slice) => slice.name === 'labkern::exec::timer_tick');
    const counted = lab.exec?.ticks ?? -1;
    t.ok(ticks.filter(({ begin }) => begin < report).length <= counted && counted <= ticks.length, `${counted} ticks`);
    t.equal(calls(output, 'labkern::exec::timer_tick'), ticks.length);
    checkNesting(t, slices);
    t.ok(callers(slices, 'labkern::exec::timer_tick').has('labkern::exec::run'));
  });
}

t.test('--max-depth', async (t) => {
  const deep = [5, 6, 7].flatMap((i) => ['-p', `fn:deep${i}`]);
  const shallow = await run(t, 'rv-o2', ...deep, '-D', '2', '--engine', 'stop');
  const counted = shallow.lab.stats.get('deep_calls')?.calls;
  t.strictSame(
    shallow.output.functions.map((row) => [row.function, row.calls]),
    [5, 6].map((i) => [`labkern::work::deep${i}`, counted]),
  );
  // 3 entries and 2 returns each, and the guest's end; beside those that measure what stops cost.
  const { stops, leak } = shallow.output;
  t.equal(stops - (leak?.stops ?? 0), (counted ?? 0) * 5 + 1, 'nobody waits for the return of a call that is left out');
});

t.test('-o calls.txt: a tree to read, without values where none are wanted', async (t) => {
  const tree = join(scratchFolder(t), 'calls.txt');
  const { output } = await run(t, 'rv-o2', '-p', 'fn:deep*', '--no-args', '-o', tree);
  t.equal(output.trace, tree);
  const lines = readFileSync(tree, 'utf8').split('\n');
  t.equal(lines.filter((line) => /^ +[\d.]+ us +\[ 0\] {2}labkern::work::deep0\(\) \{$/.test(line)).length, 220);
  t.equal(
    lines.filter((line) => /^ +[\d.]+ us +[\d.]+ [nm]s|us +\[ 0\] {16}labkern::work::deep7\(\)$/.test(line)).length > 0,
    true,
  );
});

t.test('what cannot be traced is told before the target is touched', async (t) => {
  const ask = async (...options: string[]) => {
    const { status, stdout } = await rsptrace('run', '--json', ...options, elfPath('rv-o2'), '--', 'false').ended;
    return { status, ...(JSON.parse(stdout) as { error: { code: string; hint: string } }) };
  };
  t.match(await ask('-p', 'fn:deepp7'), { status: 1, error: { code: 'PROBE_NO_MATCH', hint: /deep7/ } });
  t.match(await ask('-p', 'fn:trap_entry'), { status: 1, error: { code: 'PROBE_UNSAFE' } });
  t.match(await ask('-p', '!fn:deep7'), { status: 2, error: { code: 'PROBE_SYNTAX' } });
  t.match(await ask('-p', 'fn:deep7', '-t', '10'), { status: 2, error: { code: 'USAGE' } });
});
