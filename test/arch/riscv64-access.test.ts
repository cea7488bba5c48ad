// What instructions are about to do with memory: assembled by GNU as, against the ISA manual ("Load and Store Instructions", "A", "F" and "D").
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { riscv64 } from '../../src/arch/riscv64/index.js';
import { scratchFolder } from '../support/command.js';

/** By mnemonic: bytes, and whether they are read (r) or written (w). */
const table: readonly [text: string, length: number, access: string][] = [
  ['lb t0, -1(a0)', 1, 'r'],
  ['lbu t0, -1(a0)', 1, 'r'],
  ['lh t0, -1(a0)', 2, 'r'],
  ['lhu t0, -1(a0)', 2, 'r'],
  ['lw t0, -1(a0)', 4, 'r'],
  ['lwu t0, -1(a0)', 4, 'r'],
  ['ld t0, -1(a0)', 8, 'r'],
  ['flw ft0, -1(a0)', 4, 'r'],
  ['fld ft0, -1(a0)', 8, 'r'],
  ['sb t0, -1(a0)', 1, 'w'],
  ['sh t0, -1(a0)', 2, 'w'],
  ['sw t0, -1(a0)', 4, 'w'],
  ['sd t0, -1(a0)', 8, 'w'],
  ['fsw ft0, -1(a0)', 4, 'w'],
  ['fsd ft0, -1(a0)', 8, 'w'],
  ['lr.w t0, (a0)', 4, 'r'],
  ['sc.d t0, t1, (a0)', 8, 'w'],
  ['amoadd.w t0, t1, (a0)', 4, 'rw'],
  ['amoswap.d.aqrl t0, t1, (a0)', 8, 'rw'],
  ['c.lw a1, 0(a0)', 4, 'r'],
  ['c.ld a1, 0(a0)', 8, 'r'],
  ['c.sd a1, 0(a0)', 8, 'w'],
  ['add t0, a0, a1', 0, ''],
  ['jalr ra, 0(a0)', 0, ''],
  ['beq a0, a1, .', 0, ''],
  ['csrr t0, mhartid', 0, ''],
];

t.test('loads, stores and atomics', async (t) => {
  const source = join(scratchFolder(t), 'access.s');
  // Each in sixteen bytes of its own.
  writeFileSync(
    source,
    `.option norelax\n${table.map(([text]) => `.option norvc\n.balign 16\n.option rvc\n${text}\n`).join('')}`,
  );
  execFileSync('riscv64-linux-gnu-as', ['-march=rv64gc', source, '-o', `${source}.o`]);
  execFileSync('riscv64-linux-gnu-objcopy', ['-O', 'binary', '-j', '.text', `${source}.o`, `${source}.bin`]);
  const code = readFileSync(`${source}.bin`);
  const registers = { register: (name: string) => (name === 'a0' ? 0x8000_1001n : undefined) };
  for (const [index, [text, length, access]] of table.entries()) {
    const found = riscv64.memoryAccess?.(code.subarray(16 * index, 16 * index + 4), registers);
    const address = text.includes('-1(') ? 0x8000_1000n : 0x8000_1001n;
    const wanted = { address, length, reads: access.includes('r'), writes: access.includes('w') };
    t.same(found, access === '' ? undefined : wanted, text);
  }
});
