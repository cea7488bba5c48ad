// Kernels whose functions are called before they turn paging on, and before they turn to their last page table: so many stops are taken, the
// rest is said to be missing.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { frozenQemu, rsptrace, scratchFolder } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { long, usually, variant } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import {
  firmwareKernel,
  lateKernel,
  type PagingKernel,
  secondHartKernel,
  tablesKernel,
} from '../support/tiny-kernels.js';

interface Left {
  readonly ram: { readonly past_wire: boolean };
  readonly trampolines_stay: boolean;
  readonly trampolines_needed: boolean;
}

/** Each of the early ones is two hits, of which auto takes 500. */
const calls = { early: 300, work: 5000 };
const why = 'the last page table was not in use yet';

function record(t: Test, ...options: string[]) {
  return recordKernel(t, lateKernel(t, calls), options);
}

function recordHigh(t: Test, ...options: string[]) {
  return recordKernel(t, lateKernel(t, { ...calls, isHigh: true }), options);
}

async function recordKernel(t: Test, kernel: PagingKernel, options: readonly string[]) {
  const { counted, stderr, ...recorded } = await recordCounted(t, kernel, ['early', 'work'], options);
  t.same(counted, [calls.early, calls.work], `what the kernel has counted; ${stderr.slice(-300)}`);
  return recorded;
}

async function recordCounted(
  t: Test,
  { elf, command }: PagingKernel,
  functions: readonly string[],
  options: readonly string[],
) {
  const folder = scratchFolder(t);
  const [trace, kept] = [join(folder, 'out.txt'), join(folder, 'console')];
  const probes = functions.flatMap((name) => ['-p', `fn:${name}`]);
  const words = ['run', '-o', trace, '--console', kept, ...probes, ...options, elf, '--', ...command];
  const { stdout, stderr } = await rsptrace(...words).ended;
  const printed = readFileSync(kept, 'latin1').replaceAll('\r', '');
  const counted = /((?:\d{5}\n)+)$/.exec(printed)?.[1]?.trim().split('\n').map(Number);
  return { stdout, stderr, counted, trace: readFileSync(trace, 'utf8') };
}

function callsOf({ functions }: Recording): Record<string, number> {
  return Object.fromEntries(functions.map(({ function: name, calls }) => [name, calls]));
}

t.test('auto: 500 hits, then nothing until paging is on, then all', async (t) => {
  const { stdout, trace } = await record(t, '--json');
  const output = JSON.parse(stdout) as Recording;
  t.match(output.gaps, [{ why }]);
  t.equal(output.gaps.length, 1);
  t.ok((output.gaps[0]?.to_ns ?? 0) > (output.gaps[0]?.from_ns ?? 0));
  const { early = 0, work } = callsOf(output);
  t.ok(early >= 240 && early <= 250, `${early} of ${calls.early} calls before`);
  t.equal(work, calls.work);
  t.ok(output.probes.every(({ engine }) => engine === 'target'));
  t.ok(output.stops < 520, `${output.stops} stops`);
  t.match(trace, /^# not recorded: the last page table was not in use yet: /m);
});

t.test('target: no stop, and the same afterwards', async (t) => {
  const output = JSON.parse((await record(t, '--json', '--engine', 'target')).stdout) as Recording;
  t.match(output.gaps, [{ from_ns: 0, why }]);
  const { early, work } = callsOf(output);
  t.equal(early ?? 0, 0);
  t.equal(work, calls.work);
  t.ok(output.stops < 20, `${output.stops} stops`);
});

t.test(
  'the longest loop of a boot lies in the page where paging is turned on: its breakpoint is given up',
  async (t) => {
    const { stdout } = await recordKernel(t, lateKernel(t, { ...calls, spin: 40_000_000 }), ['--json']);
    const output = JSON.parse(stdout) as Recording;
    t.match(output.gaps, [{ why }]);
    t.equal(callsOf(output).work, calls.work);
    t.ok(output.probes.every(({ engine }) => engine === 'target'));
  },
);

t.test('probes that nothing hits before paging do not slow a boot for longer than a second', async (t) => {
  const kernel = lateKernel(t, { early: 1, work: 20, others: 110, returns: 20_000_000 });
  const { stdout, counted } = await recordCounted(t, kernel, ['early', 'work', 'other*'], ['--json']);
  t.same(counted, [1, 20], 'what the kernel has counted');
  const output = JSON.parse(stdout) as Recording;
  t.match(output.gaps, [{ why }]);
  t.equal(output.gaps.length, 1);
  const { early, work, ...others } = callsOf(output);
  t.same([early, work], [1, 20]);
  t.equal(
    Object.values(others).reduce((sum, calls) => sum + calls, 0),
    110,
  );
  t.same(
    output.probes.filter(({ engine }) => engine !== 'target'),
    [],
  );
});

variant(t, '--from-reset and mixed take all', async (t) => {
  for (const options of usually([['--from-reset'], ['--engine', 'mixed']], ([option]) => option === '--from-reset')) {
    const output = JSON.parse((await record(t, '--json', ...options)).stdout) as Recording;
    t.same(output.gaps, []);
    t.same(callsOf(output), calls);
  }
});

t.test(
  'linked high: what runs before paging runs elsewhere, and is said to be missing; all is seen from then on',
  async (t) => {
    for (const engine of usually(['auto', 'target'], (one) => one === 'auto')) {
      const output = JSON.parse((await recordHigh(t, '--json', '--engine', engine)).stdout) as Recording;
      t.same(callsOf(output), { work: calls.work }, 'what the kernel has called where its ELF has it');
      t.match(output.gaps, [{ from_ns: 0, why: /the kernel ran where it is loaded/ }]);
      t.ok((output.gaps[0]?.to_ns ?? 0) > 0);
      t.ok(output.stops < 20, `${output.stops} stops`);
      t.ok(output.probes.every(({ engine }) => engine === 'target'));
    }
  },
);

const tables = { early: 40, middle: 3000, work: 5000 };

async function recordTables(t: Test, kernel: PagingKernel, functions: readonly string[], ...options: string[]) {
  const { stdout, stderr, counted } = await recordCounted(t, kernel, functions, ['--json', ...options]);
  t.same(counted, Object.values(tables), `what the kernel has counted; ${stderr.slice(-300)}`);
  return JSON.parse(stdout) as Recording;
}

for (const arch of usually(['riscv64', 'x86_64'] as const, (one) => one === 'riscv64')) {
  t.test(`${arch}: a call is open while the kernel turns to another table, and all calls are seen`, async (t) => {
    // With 2 GiB the hidden RAM lies beyond the first table's page of 1 GiB.
    const machines = Object.entries({ auto: '128M', target: '2G' });
    for (const [engine, memory] of usually(machines, ([engine]) => arch === 'riscv64' || engine === 'target')) {
      const kernel = tablesKernel(t, arch, tables, memory);
      const output = await recordTables(t, kernel, ['middle', 'paging', 'work'], '--engine', engine);
      t.same(callsOf(output), { middle: tables.middle, paging: 1, work: tables.work });
      t.ok(output.functions.every(({ lost }) => lost === 0));
      t.same(output.gaps, []);
      t.ok(output.stops < 20, `${output.stops} stops`);
    }
  });

  if (arch === 'x86_64' && !long) continue;
  t.test(`${arch}: functions too far from the others stop, and the others do not`, async (t) => {
    const output = await recordTables(
      t,
      tablesKernel(t, arch, tables),
      ['early', 'middle', 'paging', 'work'],
      '--engine',
      'mixed',
    );
    t.same(callsOf(output), { ...tables, paging: 1 });
    t.same(output.gaps, []);
    const engines = Object.fromEntries(output.probes.map(({ function: name, engine }) => [name, engine]));
    t.same(engines, { early: 'stop', middle: 'target', paging: 'target', work: 'target' });
  });
}

// On x86_64 the kernel has an `add rsp, 24; ret`, and on riscv64 nothing alike.
const ways = [
  ['riscv64', 'packets'],
  ['riscv64', 'the wire, past it'],
  ['x86_64', 'the wire, past it'],
] as const;
for (const [arch, way] of usually(ways, ([arch, way]) => arch === 'x86_64' || way === 'packets')) {
  t.test(`${arch} by ${way}: the kernel turns to another table in a call that was open at the end`, async (t) => {
    const { elf, command } = tablesKernel(t, arch, tables, '32M');
    const qemu = frozenQemu(t, command);
    // QEMU is not known behind something that forwards.
    await using proxy = way === 'packets' ? await FaultProxy.start(qemu.socket) : undefined;
    const stub = proxy?.path ?? `unix:${qemu.socket}`;
    const trace = join(scratchFolder(t), 'out.txt');
    const options = ['--json', '-p', 'fn:settle', '-p', 'fn:middle', '--until', 'paging', '-o', trace];
    const ran = await rsptrace('--remote', stub, ...options, elf).ended;
    t.equal(ran.status, 0, ran.stderr);
    const output = JSON.parse(ran.stdout) as Recording & Left;
    t.equal(output.ram.past_wire, way !== 'packets');
    const [, ...searches] = proxy?.sent.split('$m80000000,') ?? [];
    t.equal(searches.length, proxy ? 1 : 0);
    for (const after of searches)
      t.notMatch(after, /\$(vCont;)?[cC]/, 'the kernel does not run on before the client leaves');
    t.equal(ran.stderr.includes('the RAM is searched for their return addresses, by packets'), way === 'packets');
    t.same([output.end, callsOf(output)], ['until', { settle: 1, middle: tables.middle }]);
    t.same([output.trampolines_stay, output.trampolines_needed], [true, false]);
    t.match(ran.stderr, /calls were open, which return past the trampolines from now on/);
    // A kernel that has died does not end its machine.
    const killer = setTimeout(() => qemu.process.kill('SIGKILL'), 20_000);
    t.teardown(() => clearTimeout(killer));
    const console = (await qemu.ended).stdout.replaceAll('\r', '');
    t.match(console, /00040\n03000\n05000\n$/, 'the kernel runs to its end');
  });
}

variant(t, 'the last table comes into use a second after the functions that were called last', async (t) => {
  const kernel = tablesKernel(t, 'riscv64', { ...tables, wait: 12_000_000 });
  const output = await recordTables(t, kernel, ['middle', 'paging', 'work']);
  t.same(callsOf(output), { middle: tables.middle, paging: 1, work: tables.work });
  t.ok(output.probes.every(({ engine }) => engine === 'target'));
});

t.test(
  'attached at the reset: a kernel that takes all RAM for its own keeps what it calls, and it is said',
  async (t) => {
    const { elf, command } = tablesKernel(t, 'riscv64', { ...tables, ram: 128 });
    const qemu = frozenQemu(t, command);
    const probes = ['middle', 'paging', 'work'].flatMap((name) => ['-p', `fn:${name}`]);
    const trace = join(scratchFolder(t), 'out.txt');
    const ran = await rsptrace('--remote', `unix:${qemu.socket}`, '--json', ...probes, '-o', trace, elf).ended;
    t.equal(ran.status, 0, ran.stderr);
    t.match(ran.stderr, /the kernel has mapped the RAM that was kept from it/);
    const output = JSON.parse(ran.stdout) as Recording;
    t.same(callsOf(output), { middle: tables.middle, paging: 1, work: tables.work });
    t.ok(output.probes.every(({ engine }) => engine === 'target'));
    const console = (await qemu.ended).stdout.replaceAll('\r', '');
    t.match(console, /00040\n03000\n05000\n$/, 'the kernel runs to its end');
  },
);

t.test(
  'more RAM than jumps reach over: hidden RAM is mapped near a kernel that runs at its physical addresses',
  async (t) => {
    const { elf, command } = lateKernel(t, calls);
    const large = { elf, command: [...command, '-m', '4G'] };
    const output = await recordKernel(t, large, ['--json', '--engine', 'target']);
    const { functions, probes } = JSON.parse(output.stdout) as Recording;
    t.equal(functions.find((row) => row.function === 'work')?.calls, calls.work);
    t.ok(probes.every(({ engine }) => engine === 'target'));
    // Its second hart never starts, which nobody knows.
    const trace = join(scratchFolder(t), 'out.txt');
    const two = ['--engine', 'target', '-p', 'fn:work', '-o', trace, elf, '--', ...large.command, '-smp', '2'];
    const { stderr } = await rsptrace('run', ...two).ended;
    t.match(stderr, /no probe can be carried out without stops: .*a hart that starts later runs without paging/);
  },
);

t.test('firmware in the same ELF, which never pages, reaches the trampolines too', async (t) => {
  const { stdout, counted } = await recordCounted(t, firmwareKernel(t, 5000), ['work', 'served'], ['--json']);
  t.same(counted, [5000, 5000], 'what the kernel has counted');
  const output = JSON.parse(stdout) as Recording;
  t.same(callsOf(output), { work: 5000, served: 5000 });
  t.ok(output.probes.every(({ engine }) => engine === 'target'));
});

const late = { calls: 3000, seen: 7 };

for (const arch of usually(['riscv64', 'aarch64'] as const, (one) => one === 'riscv64'))
  t.test(`${arch}: what a hart that starts late runs where it is loaded is not patched`, async (t) => {
    const kernel = secondHartKernel(t, arch, late);
    const probes = ['shared', 'paging', 'work'];
    const { stdout, stderr, counted } = await recordCounted(t, kernel, probes, ['--json', '--duration', '20s']);
    // Each hart calls `shared` once where it is loaded, which no probe sees.
    t.same(counted, [late.seen + 2, 2 * late.calls], `what the kernel has counted; ${stderr.slice(-300)}`);
    const output = JSON.parse(stdout) as Recording;
    t.same(callsOf(output), { shared: late.seen, work: 2 * late.calls });
    const engines = Object.fromEntries(output.probes.map(({ function: name, engine }) => [name, engine]));
    t.same(engines, { shared: 'stop', paging: 'stop', work: 'target' });
  });

t.test('a hart has trampolines in a table that others have left, if it begins with it, or waits there', async (t) => {
  for (const isEarly of [false, true]) {
    const kernel = secondHartKernel(t, 'x86_64', { ...late, isEarly });
    const { stdout, stderr, counted } = await recordCounted(t, kernel, ['work'], ['--json']);
    t.same(counted, [late.seen, 2 * late.calls], `what the kernel has counted; ${stderr.slice(-300)}`);
    const output = JSON.parse(stdout) as Recording;
    t.same(callsOf(output), { work: 2 * late.calls });
    t.ok(output.probes.every(({ engine }) => engine === 'target'));
  }
});

t.test(
  'only what runs before paging is probed: that is said, and not only that the ELF may be another one',
  async (t) => {
    const { elf, command } = lateKernel(t, { early: 1, work: 1, isHigh: true });
    const trace = join(scratchFolder(t), 'out.txt');
    const { stderr } = await rsptrace('run', '-o', trace, '-p', 'fn:early', elf, '--', ...command).ended;
    t.match(
      stderr,
      /no probe was hit: what runs before paging is on runs elsewhere, where no probe is; if they run later,/,
    );
  },
);

t.test('for people: one line', async (t) => {
  const { stdout } = await record(t, '--engine', 'target');
  t.match(
    stdout,
    /^nothing recorded from [\d.]+ \w+ to [\d.]+ \w+ by the guest's clock: .*; --from-reset records it by stops, which only a few probes can afford$/m,
  );
});
