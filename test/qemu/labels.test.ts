// Labels and trap entries that a probe insists on: their entries alone, against the harts' own counters of interrupts.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import type { Recording } from '../support/recording.js';
import { hartCounts, hartsKernel } from '../support/tiny-kernels.js';

const probes = ['fn:trap!', 'fn:arm!', 'fn:number!', 'fn:tick'].flatMap((probe) => ['-p', probe]);

for (const arch of ['riscv64', 'x86_64'] as const) {
  for (const engine of ['mixed', 'stop']) {
    t.test(`${arch}, --engine ${engine}`, { timeout: 600_000 }, async (t) => {
      const { elf, command } = hartsKernel(t, arch, { harts: 1, calls: 50, period: 20_000, ticks: 20 });
      const kept = join(scratchFolder(t), 'console');
      const args = ['run', '--json', '--engine', engine, '-o', `${kept}.txt`, '--console', kept, ...probes];
      const output = await rsptrace(...args, elf, '--', ...command).json<Recording>();
      t.same([output.end, output.missing], ['guest-ended', 0]);
      const ticks = hartCounts(readFileSync(kept, 'latin1'))[0]?.ticks ?? 0;
      t.ok(ticks >= 20);
      const rows = new Map(output.functions.map((row) => [row.function, row]));
      // It arms its timer once at its start, and in each interrupt.
      t.match(rows.get('trap'), { calls: ticks, lost: ticks, total_ns: 0 });
      t.match(rows.get('arm'), { calls: ticks + 1, lost: ticks + 1, total_ns: 0 });
      t.match(rows.get('number'), { calls: 5, lost: 5 }, 'it prints five of them');
      t.match(rows.get('tick'), { calls: ticks, lost: 0 });
      const engines = Object.fromEntries(output.probes.map((probe) => [probe.function, probe.engine]));
      const called = engine === 'stop' ? 'stop' : 'target';
      // A handler of faults may know the first instruction of x86_64's `arm`, which writes memory, by its label.
      const arm = arch === 'x86_64' ? 'stop' : called;
      t.strictSame(engines, { trap: 'stop', arm, number: called, tick: called }, 'what a call leads to needs no stop');
      if (engine === 'mixed')
        t.match(output.probes.find((probe) => probe.function === 'trap')?.why, /no call leads to it/);
    });
  }
}

t.test('without insisting they are refused', async (t) => {
  const { elf, command } = hartsKernel(t, 'riscv64', { harts: 1, calls: 5, period: 0 });
  const { status, stderr } = await rsptrace('run', '--dry-run', '-p', 'fn:trap', elf, '--', ...command).ended;
  t.equal(status, 1);
  t.match(stderr, /PROBE_UNSAFE/);
  t.match(stderr, /a label in assembly.*fn:trap!/s, 'with the way out');
});
