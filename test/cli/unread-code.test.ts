// Of very much code the largest functions are not read, so that a recording begins soon.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';

t.test('functions above what can be read soon are left out, and say so', async (t) => {
  const file = join(scratchFolder(t), 'large');
  const body = (name: string, bytes: number): string =>
    `.globl ${name}\n.type ${name}, @function\n${name}: .fill ${bytes - 1}, 1, 0x90\nret\n.size ${name}, ${bytes}\n`;
  const small = Array.from({ length: 9 }, (_, i) => body(`small_${i}`, 32 + i)).join('');
  const input = `.text\n.globl _start\n_start: ret\n${small}${body('large', 9_000_000)}`;
  execFileSync('as', ['-o', `${file}.o`, '-'], { input });
  execFileSync('ld', ['-o', file, `${file}.o`]);
  const options = ['--dry-run', '--json', '--engine', 'mixed', '-p', 'fn:small_*', '-p', 'fn:large'];
  const { stdout } = await rsptrace('run', ...options, file).ended;
  const { probes } = JSON.parse(stdout) as { probes: { function: string; engine: string; why?: string }[] };
  const all = new Map(probes.map((one) => [one.function, one]));
  for (let i = 0; i < 9; i++) t.equal(all.get(`small_${i}`)?.engine, 'target');
  t.match(
    all.get('large')?.why,
    /its code is not read, because the 10 functions .* have 9 MB: only those up to 40 bytes/,
  );
});
