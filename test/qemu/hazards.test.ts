// What the engine without stops may stumble over: it says so, and the program computes what it does untraced.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { frozenQemu, rsptrace, scratchFolder } from '../support/command.js';
import { frame } from '../support/fake-stub.js';
import { FaultProxy } from '../support/fault-proxy.js';
import type { Recording } from '../support/recording.js';
import { hazardsKernel } from '../support/tiny-kernels.js';

const calls = 40;

/** Runs the kernel under rsptrace: what that says, and what the kernel prints. */
async function traced(t: Test, options: readonly string[], bytes = 0, edit?: (text: string) => string) {
  const { elf, command } = hazardsKernel(t, { calls, own: bytes });
  const folder = scratchFolder(t);
  const qemu = frozenQemu(t, command);
  await using proxy = await FaultProxy.start(qemu.socket, edit ? { 'to-stub': { edit } } : {});
  const record = ['--remote', proxy.path, '--json', '-o', join(folder, 'out.json'), ...options, elf];
  const { status, stdout, stderr } = await rsptrace(...record).ended;
  const printed = (await qemu.ended).stdout.trim();
  return { status, stderr, printed, output: JSON.parse(stdout) as Recording };
}

const both = ['-p', 'count:work', '-p', 'count:changed'];
/** A section of its own needs no proof that it is free: trampolines are installed at the first hit. */
const own = 1 << 17;
const untraced = `calls ${calls} code same total ${3 * calls}`;

t.test('code that sums itself up sees the jumps, and no breakpoints', async (t) => {
  for (const engine of ['stop', 'target']) {
    const { status, output, printed, stderr } = await traced(
      t,
      ['-p', 'count:work', '--engine', engine, '--until', 'drained'],
      own,
    );
    t.equal(status, 0, stderr);
    t.strictSame(
      output.counts.map((row) => row.calls),
      [calls],
    );
    t.strictSame(
      output.probes.map((probe) => probe.engine),
      [engine],
    );
    t.equal(printed, engine === 'stop' ? untraced : untraced.replace('same', 'other'), engine);
  }
});

t.test('no trampoline lies between a load that reserves memory and its store, which would fail for ever', async (t) => {
  const source = join(import.meta.dirname, '../support/kernels/hazards-riscv64.s');
  const line =
    readFileSync(source, 'utf8')
      .split('\n')
      .findIndex((text) => text.endsWith('# reserved')) + 1;
  const probe = `line:hazards-riscv64.s:${line}`;
  const { status, output, printed, stderr } = await traced(t, ['-p', probe, '--engine', 'mixed'], own);
  t.equal(status, 0, stderr);
  t.match(output.probes, [{ engine: 'stop', why: /between a load that reserves memory and the store to it/ }]);
  t.match(output, { lines: [{ hits: calls }] });
  t.equal(printed, untraced);
});

t.test('code that has changed since the beginning, with a stop at each call', async (t) => {
  const { status, output, printed, stderr } = await traced(t, [...both, '--engine', 'stop']);
  t.equal(status, 0, stderr);
  t.strictSame(
    output.counts.map((row) => row.calls),
    [calls, calls],
  );
  t.equal(printed, untraced, 'carried out is what stands there, not what the ELF has');
});

t.test('code that has changed since the beginning keeps its breakpoint', async (t) => {
  const { status, output, printed, stderr } = await traced(
    t,
    [...both, '--engine', 'mixed', '--until', 'drained'],
    own,
  );
  t.equal(status, 0, stderr);
  t.match(output.probes, [
    { function: 'work', engine: 'target' },
    { function: 'changed', engine: 'stop', why: /not the ELF's any more/ },
  ]);
  t.strictSame(
    output.counts.map((row) => row.calls),
    [calls, calls],
  );
  t.equal(printed, untraced.replace('same', 'other'), 'the changed function does what the program made of it');
});

t.test('memory that takes what is written and does not keep it', async (t) => {
  // Registers of the interrupt controller.
  const { status, output, printed, stderr } = await traced(t, [...both, '--scratch', '0xc000000,256K']);
  t.equal(status, 3, stderr);
  t.match(output.error, { code: 'SCRATCH_UNUSABLE', message: /does not keep what is written/ });
  t.match(
    output.probes,
    [{ engine: 'stop', why: output.error?.message }, { engine: 'stop' }],
    'what was used until then',
  );
  t.equal(printed, untraced, 'nothing was patched');
});

t.test('memory that is none to give', async (t) => {
  const { status, output, printed, stderr } = await traced(t, [...both, '--scratch', '0x80000000,256K']);
  t.equal(status, 3, stderr);
  t.match(output.error, { code: 'SCRATCH_UNUSABLE', message: /the program's \.text lies there/ });
  t.equal(printed, untraced);
});

t.test('a stub that does not write memory', async (t) => {
  const edit = (text: string): string => text.replaceAll(/\$[MX][^#]*#../g, frame('vNoSuchPacket'));
  const { status, output, printed, stderr } = await traced(t, both, own, edit);
  t.equal(status, 0, stderr);
  const [why, ...others] = new Set(output.probes.map((probe) => probe.why));
  t.match(why, /\.rsptrace.*does not keep what is written/);
  t.strictSame(others, []);
  t.strictSame(
    output.counts.map((row) => row.calls),
    [calls, calls],
  );
  t.equal(printed, untraced, 'no instruction was carried out by writes that the stub refused');
});

t.test('code in the memory for trampolines', async (t) => {
  const { elf } = hazardsKernel(t, { calls, own });
  t.match(await rsptrace('run', '--json', '-p', 'count:inside', elf, '--', 'false').json(1), {
    error: { code: 'PROBE_UNSAFE', hint: /\.rsptrace/ },
  });
});
