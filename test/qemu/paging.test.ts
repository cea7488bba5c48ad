// Small kernels that page, traced without stops by the real command: calls against the kernels' own counts.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { INNER_CALLS, NEAR_BASE, pagingKernel, WORK_CALLS } from '../support/tiny-kernels.js';

const tables = [
  ['riscv64', 3],
  ['riscv64', 4],
  ['riscv64', 5],
  ['x86_64', 4],
  ['x86_64', 5],
] as const;
// Three levels are below; of Linux, five of riscv64's and four of x86_64's.
for (const [name, levels] of usually(tables, ([name, levels]) => levels === (name === 'riscv64' ? 4 : 5))) {
  t.test(`${name}, ${levels} levels`, async (t) => {
    const { elf, command } = pagingKernel(t, name, levels);
    const folder = scratchFolder(t);
    const kept = join(folder, 'console');
    const probes = ['work', 'outer', 'inner'].flatMap((each) => ['-p', `fn:${each}`]);
    const options = ['--engine', 'target', '--json', '-o', join(folder, 'out.txt'), '--console', kept];
    const output = await rsptrace('run', ...options, ...probes, elf, '--', ...command).json<Recording>();
    t.equal(output.end, 'guest-ended');
    t.match(output.scratch, /^hidden RAM .*, mapped at 0xffffffff[89a-f][0-9a-f]{7}, shared through a file$/);
    t.equal(output.missing, 0);
    t.equal(output.probes.length, 3);
    t.ok(output.probes.every(({ engine }) => engine === 'target'));
    const calls = new Map(output.functions.map((row) => [row.function, row.calls]));
    const [, work, inner] = (/(\d{4})\r?\n(\d{4})\r?\n$/.exec(readFileSync(kept, 'latin1')) ?? []).map(Number);
    t.equal(work, WORK_CALLS, 'what the kernel has counted');
    t.equal(inner, INNER_CALLS);
    t.equal(calls.get('work'), work);
    t.equal(calls.get('outer'), work, 'once for each');
    t.equal(calls.get('inner'), inner, 'twice in each, calling itself');
    t.ok(output.functions.every(({ lost }) => lost === 0));
    t.ok(output.stops < 20, `${output.stops} stops`);
  });
}

t.test('riscv64, data no-execute: statics of the kernel hold trampolines and ring', async (t) => {
  const { elf, command } = pagingKernel(t, 'riscv64', 3, NEAR_BASE, 'SCRATCH');
  const options = ['--json', '--engine', 'target', '-o', join(scratchFolder(t), 'out.json')];
  const words = ['run', ...options, '-p', 'fn:work', '-p', 'fn:inner', elf, '--', ...command];
  const { scratch, missing, functions } = await rsptrace(...words).json<Recording>();
  t.match(
    scratch,
    /^the static __rsptrace_data \(0xffffffff80[0-9a-f]{6}, 262144 bytes\), code among that of the program/,
  );
  t.equal(missing, 0);
  t.equal(functions.find(({ function: name }) => name === 'work')?.calls, WORK_CALLS);
  t.equal(functions.find(({ function: name }) => name === 'inner')?.calls, INNER_CALLS);
});
