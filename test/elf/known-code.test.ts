// Instructions that tables of Linux name: entries of all layouts that there were, written by `as`, against the labels in them.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { ElfFile, KnownCode } from '../../src/elf/index.js';
import { scratchFolder } from '../support/command.js';

/** Tables with three entries, each of which names two of the instructions. */
const tables: readonly (readonly [name: string, section: string, entry: (first: number, second: number) => string])[] =
  [
    ['before 5.16, AArch64', '__ex_table', (insn, fixup) => `.long ${insn}b - ., ${fixup}b - .`],
    ['before 5.16, RISC-V', '__ex_table', (insn, fixup) => `.quad ${insn}b, ${fixup}b`],
    ['since 5.16', '__ex_table', (insn, fixup) => `.long ${insn}b - ., ${fixup}b - ., 0x30001`],
    ['static keys', '__jump_table', (code, target) => `.long ${code}b - ., ${target}b - .; .quad key - .`],
  ];

for (const [name, section, entry] of tables) {
  t.test(`${section}, ${name}`, async (t) => {
    const program = join(scratchFolder(t), 'program');
    const code = Array.from({ length: 8 }, (_, i) => `${i}: .skip 8, 0x90`);
    const named = [entry(1, 6), entry(2, 6), entry(4, 6)];
    const source = [
      '.globl _start',
      '_start:',
      ...code,
      `.section ${section}, "a"`,
      ...named,
      '.data',
      'key: .quad 0',
      '',
    ];
    const build = ['-x', 'assembler', '-nostdlib', '-static', '-o', program, '-'];
    execFileSync('gcc', build, { input: source.join('\n') });
    const elf = await ElfFile.open(program);
    const text = elf.sections.find((one) => one.name === '.text');
    const low = elf.codes.toCode(text?.address ?? 0n);
    const known = new KnownCode(elf, (address) => address >= low && address < low + (text?.size ?? 0));
    const isKnown = code.map((_, i) => known.in(low + 8 * i, low + 8 * (i + 1)) !== undefined);
    t.same(isKnown, [false, true, true, false, true, false, true, false]);
  });
}
