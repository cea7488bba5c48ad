// What keeps probes from running without stops is said at once, before the guest runs; or there is a way.

import { join } from 'node:path';
import t, { type Test } from 'tap';
import { frozenQemu, rsptrace, scratchFolder } from '../support/command.js';
import { runDoctor } from '../support/doctor.js';
import { frame } from '../support/fake-stub.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { diskKernel, gatedKernel, guestsKernel, kernelWith, tagsKernel } from '../support/tiny-kernels.js';

interface Hurdle {
  readonly code: string;
  readonly text: string;
  readonly way_out: string | null;
  readonly probes: number;
}

interface Output extends Recording {
  readonly hurdles: readonly Hurdle[];
}

const calls = 3000;

function record(t: Test, ...words: string[]) {
  const [first = '', ...others] = words;
  const options = ['--json', '-o', join(scratchFolder(t), 'out.txt')];
  return rsptrace(...(first === 'run' ? [first, ...options] : [...options, first]), ...others).ended;
}

/** What the kernel has printed: calls of `work`, and how often an instruction was illegal. */
function printed(text: string): number[] {
  return [...text.replaceAll('\r', '').matchAll(/^(\d{5})$/gm)].map(([, number]) => Number(number));
}

t.test('mcounteren is 0: the kernel is let read the time, and nothing is illegal', async (t) => {
  const { elf, command } = gatedKernel(t, calls);
  const { status, stdout, stderr } = await record(t, 'run', '-p', 'fn:work', elf, '--', ...command);
  t.equal(status, 0, stderr.slice(-300));
  const output = JSON.parse(stdout) as Output;
  t.match(output.hurdles, [{ code: 'counter', probes: 1, way_out: /^rsptrace lets it/ }]);
  t.equal(output.clock.name, 'riscv-time');
  t.match(output.functions, [{ function: 'work', calls }]);
  t.ok(output.stops < 10, `${output.stops} stops`);
  t.equal(output.missing, 0);
  // While it ran on, its own read of the time was legal.
  t.same(printed(stderr), [calls, 0]);
});

t.test('four harts, each kept from the counter: it is opened on all of them', async (t) => {
  const { elf, command } = gatedKernel(t, calls, { harts: 4 });
  const { status, stdout, stderr } = await record(t, 'run', '-p', 'fn:work', elf, '--', ...command);
  t.equal(status, 0, stderr.slice(-300));
  const output = JSON.parse(stdout) as Output;
  t.match(output.hurdles, [{ code: 'counter', text: /on 4 harts/, way_out: /^rsptrace lets it/ }]);
  t.match(output.functions, [{ function: 'work', calls: 4 * calls }]);
  t.ok(output.stops < 10, `${output.stops} stops`);
  t.equal(output.missing, 0);
  t.same(printed(stderr), [4 * calls, 0]);
});

t.test(
  'two of four harts never leave their firmware, which may close the counter: calls stop, and it is said',
  async (t) => {
    const { elf, command } = gatedKernel(t, 50, { harts: 4, parked: 2 });
    const words = ['-o', join(scratchFolder(t), 'out.txt'), '-p', 'fn:work', elf, '--', ...command];
    const { stdout, stderr } = await rsptrace('run', ...words).ended;
    t.match(
      stderr,
      /the kernel may not read the time counter, and 2 harts are in their firmware, which may set mcounteren/,
    );
    t.match(stderr, /to spare most stops: begin when these harts have left their firmware/);
    t.match(stdout, /^ *100 .* work/m);
    t.same(printed(stdout), [100, 2], 'nothing was opened');
  },
);

t.test('what was opened is closed again', async (t) => {
  // However late rsptrace leaves, the kernel ends only then.
  const { elf, command } = gatedKernel(t, 2000, { spin: 40_000, awaitsClosing: true });
  const options = ['--max-events', '200', '--keep-running', '-p', 'fn:work'];
  const { stdout, stderr } = await record(t, 'run', ...options, elf, '--', ...command);
  const output = JSON.parse(stdout) as Output;
  t.ok(output.stops < 10);
  t.equal(output.counter_stays_open, null);
  t.same(printed(stderr), [2000, 1], 'its own read of the time is illegal again');
});

t.test(
  'a call is open when rsptrace leaves: it is waited for, and only one that stays keeps the counter open',
  async (t) => {
    // `work` takes nearly all of the time, so that rsptrace leaves in the middle of it. `rounds` has all calls of it.
    const spin = { work: 100_000 };
    const { elf, command } = gatedKernel(t, 1000, { ...spin, awaitsClosing: true });
    const options = ['--max-events', '40', '--keep-running'];
    const closed = await record(t, 'run', ...options, '-p', 'fn:work', elf, '--', ...command);
    t.equal((JSON.parse(closed.stdout) as Output).counter_stays_open, null);
    t.same(printed(closed.stderr), [1000, 1], 'it is closed');

    // It runs for seconds, however long a busy host takes to leave.
    const endless = gatedKernel(t, 10_000, spin);
    const probes = ['all', 'rounds', 'work'].flatMap((name) => ['-p', `fn:${name}`]);
    const open = await record(t, 'run', ...options, ...probes, endless.elf, '--', ...endless.command);
    t.equal((JSON.parse(open.stdout) as Output).counter_stays_open, 'mcounteren');
    t.match(open.stderr, /the kernel may go on reading it \(mcounteren, on 1 hart\)/);
    t.same(printed(open.stderr), [10_000, 0], 'the kernel reads the time');
  },
);

t.test('who only counts needs no counter, and opens none', async (t) => {
  const { elf, command } = gatedKernel(t, calls);
  const { stdout, stderr } = await record(t, 'run', '-p', 'count:work', elf, '--', ...command);
  const output = JSON.parse(stdout) as Output;
  t.same(output.hurdles, []);
  t.match(output.counts, [{ function: 'work', calls }]);
  t.ok(output.stops < 10, `${output.stops} stops`);
  t.same(printed(stderr), [calls, 1]);
});

t.test('a stub that does not write mcounteren: what writes records stops, what counts does not', async (t) => {
  const { elf, command } = gatedKernel(t, calls);
  const qemu = frozenQemu(t, command);
  await using proxy = await FaultProxy.start(qemu.socket, {
    'to-stub': { edit: (text) => text.replaceAll(/\$P348=([0-9a-f]+)#../g, (_, value) => frame(`Pffff=${value}`)) },
  });
  // Without a budget for stops, which a busy host spends early.
  const options = ['--scratch', '0x87000000,1M', '--engine', 'mixed', '-p', 'count:work', '-p', 'fn:number'];
  const { status, stdout, stderr } = await record(t, '--remote', proxy.path, ...options, elf);
  t.equal(status, 0, stderr.slice(-300));
  const output = JSON.parse(stdout) as Output;
  t.match(output.counts, [{ function: 'work', calls }]);
  t.match(output.functions, [{ function: 'number', calls: 2 }]);
  const engines = Object.fromEntries(output.probes.map(({ function: name, engine }) => [name, engine]));
  t.same(engines, { work: 'target', number: 'stop' });
  t.match(
    output.probes.find(({ engine }) => engine === 'stop')?.why,
    /^the kernel may not read the time counter, and the stub does not write mcounteren$/,
  );
  // While it is found out whether the memory is free, all stop.
  t.ok(output.stops < calls / 2, `${output.stops} stops`);
  t.same(printed((await qemu.ended).stdout), [calls, 1]);
});

t.test(
  'no memory, and code that only a short jump may reach: said together, and by doctor and --dry-run',
  async (t) => {
    const few = 100;
    const { elf, command } = gatedKernel(t, few, { gap: 3 << 20 });
    const dry = JSON.parse(
      (await rsptrace('--remote', ':1', '--dry-run', '--json', '-p', 'fn:work', elf).ended).stdout,
    );
    t.match((dry as Output).hurdles, [{ code: 'reach', probes: 1, text: /no register is free .*\(work\)$/ }]);
    const doctor = await runDoctor(
      frozenQemu(t, command).socket,
      '--no-run',
      '--scratch',
      'none',
      '-p',
      'fn:work',
      elf,
    );
    const found = doctor.found.program as unknown as Output;
    t.same(
      found.hurdles.map(({ code }) => code),
      ['memory', 'reach'],
    );
    const qemu = frozenQemu(t, command);
    const { stdout } = await record(t, '--remote', qemu.socket, '--scratch', 'none', '-p', 'fn:work', elf);
    const output = JSON.parse(stdout) as Output;
    t.same(
      output.hurdles.map(({ code }) => code),
      ['memory', 'reach'],
    );
    t.match(output.hurdles[0]?.way_out, /leave --scratch none away/);
    t.match(output.functions, [{ function: 'work', calls: few }]);
    t.same(printed((await qemu.ended).stdout), [few, 1], 'with stops, nothing is opened');
  },
);

t.test('for people, on stderr, before the guest runs', async (t) => {
  const { elf, command } = gatedKernel(t, 10, { gap: 3 << 20 });
  const words = ['-o', join(scratchFolder(t), 'out.txt'), '-p', 'fn:work', elf, '--', ...command];
  const { stderr } = await rsptrace('run', ...words).ended;
  t.match(stderr, /^rsptrace: in the way of probes without stops:\n {2}1: no register is free .*\n {4}way out: /);
});

t.test(
  'a hypervisor on aarch64 whose guest runs the same function: calls stop, because the guest has no trampoline',
  async (t) => {
    const few = 40;
    const { elf, command } = guestsKernel(t, few);
    const { status, stdout, stderr } = await record(t, 'run', '-p', 'fn:work', elf, '--', ...command);
    t.equal(status, 0, stderr.slice(-300));
    const output = JSON.parse(stdout) as Output;
    t.match(output.functions, [{ function: 'work', calls: 2 * few }]);
    t.match(output.probes, [{ engine: 'stop', why: /hypervisor, whose guests may run/ }]);
    t.match(output, { engines: { advice: { code: 'leave-out' } } });
    t.same(printed(stderr), [2 * few], 'and the guest ran on');
  },
);

t.test('so is code on x86_64 that runs guests, and bytes inside of an instruction are none', async (t) => {
  for (const [code, engine] of [
    ['vmrun', 'stop'],
    ['mov $0xd8010f, %eax', 'target'],
  ] as const) {
    const { elf, command } = kernelWith(t, code, 20);
    const { stdout, stderr } = await record(t, 'run', '--engine', 'mixed', '-p', 'fn:brief', elf, '--', ...command);
    const [probe] = (JSON.parse(stdout) as Output).probes;
    t.equal(probe?.engine, engine, stderr.slice(-300));
    t.equal(/hypervisor, whose guests may run/.test(probe?.why ?? ''), engine === 'stop');
  }
});

t.test('memory with tags on aarch64, and code that programs execute and nobody reads', async (t) => {
  const few = 40;
  const { elf, command } = tagsKernel(t, few);
  const functions = ['work', 'tagged', 'called', 'leaf'];
  const probes = functions.flatMap((name) => ['-p', `fn:${name}`]);
  for (const engine of usually(['mixed', 'stop'], (one) => one === 'mixed')) {
    const ran = await record(t, 'run', '--engine', engine, ...probes, elf, '--', ...command);
    const output = JSON.parse(ran.stdout) as Output;
    t.same(printed(ran.stderr), [2 * few], 'no tag was wrong');
    const found = output.functions.map(({ function: name, calls }) => [name, calls]);
    t.same(Object.fromEntries(found), Object.fromEntries(functions.map((name) => [name, few])));
    if (engine === 'stop') continue;
    const [leaf] = output.probes.filter(({ engine }) => engine === 'stop');
    t.match(leaf, { function: 'leaf', why: /executed in user mode alone/ });
    t.equal(output.probes.filter(({ engine }) => engine === 'target').length, 3);
  }
});

t.test('a machine that boots from its disk gets a module of memory; the end of RAM is a way, too', async (t) => {
  const { elf, command } = diskKernel(t, calls);
  const added = await record(t, 'run', '-p', 'fn:work', elf, '--', ...command);
  const found = JSON.parse(added.stdout) as Output;
  t.same(found.hurdles, []);
  t.match(found.functions, [{ function: 'work', calls }]);
  t.ok(found.stops < 10, `${found.stops} stops`);
  t.match(added.stderr, /03000\r?\n/);

  const few = diskKernel(t, 5);
  const own = [...few.command, '-no-acpi'];
  const told = JSON.parse((await record(t, 'run', '-p', 'fn:work', few.elf, '--', ...own)).stdout) as Output;
  t.match(told.hurdles, [
    {
      code: 'memory',
      text: /^RAM can be added as a module only, .* -no-acpi takes away$/,
      way_out: /^take --scratch top/,
    },
  ]);
  t.match(told.functions, [{ function: 'work', calls: 5 }]);
  const options = ['--scratch', 'top', '-p', 'fn:work', '--until', 'bye', '--keep-running'];
  const { stdout, stderr } = await record(t, 'run', ...options, elf, '--', ...command);
  const output = JSON.parse(stdout) as Output;
  t.same(output.hurdles, []);
  t.match(output.functions, [{ function: 'work', calls }]);
  t.ok(output.stops < calls / 2, `${output.stops} stops`);
  t.match(stderr, /03000\r?\n/);
});
