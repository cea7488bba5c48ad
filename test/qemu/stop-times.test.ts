// How long polls take that were recorded by stops, against the same polls recorded without: what stops add to QEMU's clock is taken out.

import { join } from 'node:path';
import t, { type Test } from 'tap';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { usually, variant } from '../support/long.js';
import type { FutureRow, Recording } from '../support/recording.js';
import { elfPath, parseLab, qemuArgv } from './guests/guests.js';

interface Output extends Recording {
  readonly leak?: {
    readonly total_ns: number;
    readonly per_stop_ns: number;
    readonly measured: number;
    readonly exact: boolean;
    readonly rest_per_stop_ns?: number | null;
    readonly why?: string;
  };
}

/** What `report --json` has. */
interface Saved {
  readonly times_at_most: string | null;
  readonly future: readonly FutureRow[];
}

/** The guest's timer, and at most so much of the guest's time that its handler takes. */
const TICK_NS = 1e6;
const HANDLER_NS = 500;
/** Events after which a recording ends that asks only whether something is measured. */
const few = ['--max-events', '150'];
const probes = ['-p', 'poll:level3'];

async function run(t: Test, name: string, engine: 'stop' | 'target', extra: readonly string[], options: string[] = []) {
  const trace = join(scratchFolder(t), 'out.json');
  const args = ['run', '--json', '--engine', engine, ...options, ...probes, '-o', trace, elfPath(name)];
  const { status, stdout, stderr } = await rsptrace(...args, '--', ...qemuArgv(name, extra)).ended;
  t.equal(status, 0, stderr.slice(-300));
  return outputOf(stdout);
}

/** By stops, of a QEMU that somebody else has started. `target`: what the client connects to, if not to QEMU. */
async function attach(t: Test, name: string, extra: readonly string[], options: string[], target?: FaultProxy) {
  const qemu = frozenGuest(t, name, extra);
  if (target) target.target = qemu.socket;
  const trace = join(scratchFolder(t), 'out.pftrace');
  const args = ['--engine', 'stop', ...options, ...probes, '-o', trace, elfPath(name)];
  const { status, stdout, stderr } = await rsptrace('--remote', target?.path ?? qemu.socket, ...args).ended;
  t.equal(status, 0, stderr.slice(-300));
  return { stdout, qemu, trace };
}

function outputOf(stdout: string) {
  const output = JSON.parse(stdout) as Output;
  const level3 = output.futures.find(({ future }) => future.endsWith('::level3'));
  if (!level3) throw new Error('no row of level3');
  return { output, level3 };
}

const ways = [
  ['rv-o2', 'through something that forwards'],
  ['x86-o2', 'over the socket of QEMU'],
] as const;
for (const [name, way] of usually(ways, ([one]) => one === 'rv-o2')) {
  t.test(`${name}, ${way}: under -icount polls take at most twice as long with stops`, async (t) => {
    const icount = ['-icount', 'shift=0'];
    const without = await run(t, name, 'target', icount);
    // Nobody describes QEMU's command line there.
    await using proxy = name === 'rv-o2' ? await FaultProxy.start('') : undefined;
    const attached = await attach(t, name, icount, ['--json'], proxy);
    const { output, level3 } = outputOf(attached.stdout);
    t.equal(without.output.leak, undefined);
    const { leak, stops } = output;
    t.ok(leak?.exact && leak.measured > stops / 2, `${leak?.measured} of ${stops} stops measured`);
    t.equal(level3.polls, without.level3.polls);
    const [truth, told, error = 0] = [without.level3.total_ns, level3.total_ns, level3.total_error_ns];
    const { exec } = parseLab((await attached.qemu.ended).stdout);
    // The guest's clock has what stops add to it, so the guest's timer comes in the midst of more polls.
    const timer = HANDLER_NS * (exec?.ticks ?? 0);
    t.ok(
      told + error > truth / 2 && told - error < truth * 2 + timer,
      `${told} +- ${error} ns, ${truth} without stops`,
    );
    // 1.25 ticks (100 ns, 279 ns) by the root of some 500 stops.
    t.ok(error > 2_000 && error < truth / 2, `+- ${error} ns`);
    t.ok((leak?.total_ns ?? 0) > 10 * told, `${leak?.total_ns} ns were taken out`);
    t.ok(output.guest_ns > (exec?.ticks ?? Infinity) * TICK_NS * 0.9, `${output.guest_ns} ns in all`);
  });
}

t.test('without -icount durations are upper bounds, whatever the host has to do', async (t) => {
  const { stdout, trace } = await attach(t, 'rv-o2', [], [...few, '--json']);
  const { output } = outputOf(stdout);
  t.match(output.leak, { exact: false, why: /translates all code anew after a stop/ });
  t.ok((output.leak?.measured ?? 0) >= 24, `${output.leak?.measured} measured`);
  t.ok((output.leak?.rest_per_stop_ns ?? 0) > (output.leak?.per_stop_ns ?? 0));
  for (const { future, polls, total_ns: total, times_at_most: isBound } of output.futures) {
    t.ok(isBound, future);
    // Under -icount one of them takes some 200 ns.
    t.ok(total > polls * 100, `${total} ns of ${future}`);
  }
  t.ok(output.guest_ns > 1e6 && output.guest_ns < output.ran_ms * 1e6, `${output.guest_ns} ns in all`);

  const saved = JSON.parse((await rsptrace('report', '--json', trace).ended).stdout) as Saved;
  t.match(saved.times_at_most, /translates all code anew after a stop/);
  t.same(saved.future.map(({ total_ns: total, times_at_most: isBound }) => [total, isBound]).sort(), [
    ...output.futures.map(({ total_ns: total }) => [total, true]).sort(),
  ]);
  const report = await rsptrace('report', trace).ended;
  t.match(report.stdout, /^ *\d+ .* < \d+\.\d [um]s .*labkern::work::level3 /m);
  t.match(report.stderr, /durations are upper bounds \(<\), because .* translates all code anew after a stop/);
  t.match((await rsptrace('info', trace).ended).stdout, /^(?:losses)? +durations are upper bounds \(<\), because /m);

  const told = (await attach(t, 'x86-o2', [], few)).stdout;
  t.match(told, /^ *\d+ .* < \d+\.\d [um]s +< \d+\.\d [um]s +labkern::work::level3 /m);
  t.match(told, /^durations are upper bounds \(<\), not known to better than \d+\.\d [um]s a stop, because .*-icount/m);
});

variant(t, 'with sleep=off each stop moves the clock to the next timer, and that is said', async (t) => {
  const attached = await attach(t, 'rv-o2', ['-icount', 'shift=0,sleep=off'], ['--json']);
  const { output, level3 } = outputOf(attached.stdout);
  t.match(output.leak, { exact: false, total_ns: 0, why: /sleep=off/ });
  t.ok(level3.times_at_most);
  const { exec } = parseLab((await attached.qemu.ended).stdout);
  const ticks = (exec?.ticks ?? 0) * TICK_NS;
  t.ok(Math.abs(output.guest_ns - ticks) < ticks / 50, `${output.guest_ns} ns, the guest counts ${ticks}`);
});

t.test('rv-o2: a function that nothing is open around, and a trap, take what they take without stops', async (t) => {
  const icount = ['-icount', 'shift=0'];
  const recorded = async (engine: string, probe: string, ...more: string[]) => {
    const words = ['--json', '--engine', engine, '-p', probe, '-o', join(scratchFolder(t), 'out.pftrace'), ...more];
    const ran = await rsptrace('run', ...words, elfPath('rv-o2'), '--', ...qemuArgv('rv-o2', icount)).ended;
    type Row = { readonly calls: number; readonly total_ns: number; readonly min_ns?: number };
    return JSON.parse(ran.stdout) as Output & { readonly functions: readonly Row[]; readonly traps?: readonly Row[] };
  };
  const [stopped, free] = [
    await recorded('stop', 'fn:labkern::work::deep7', '-n', '200'),
    await recorded('target', 'fn:labkern::work::deep7'),
  ].map(({ functions: [row] }) => (row?.total_ns ?? Number.NaN) / (row?.calls ?? Number.NaN));
  // The clock's tick is 100 ns: an average is off by a part of it.
  t.ok(stopped !== undefined && free !== undefined && stopped < free + 100, `${stopped} ns by stops, ${free} without`);
  const { traps, leak } = await recorded('stop', 'irq:**', '-n', '60');
  const [irq] = traps ?? [];
  const average = (irq?.total_ns ?? Number.NaN) / (irq?.calls ?? 0);
  t.ok(average < (leak?.per_stop_ns ?? 0) / 4, `${average} ns a trap, which stops prolong by ${leak?.per_stop_ns}`);
});
