// Addresses that a position-independent program keeps in its data, of processors whose psABIs number relocations differently: what binutils
// says of the symbols that the data names.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { codePointers, ElfFile } from '../../src/elf/index.js';
import { scratchFolder } from '../support/command.js';

const SOURCE = `
static int twice(int x) { return x * 2; }
int thrice(int x) { return x * 3; }
static int never(int x) { return x * 5; }
int (*const table[])(int) = { twice, thrice };
int _start(int x) { return table[x & 1](never(x)); }
`;

for (const [name, compiler] of [
  ['x86_64', 'gcc'],
  ['aarch64', 'aarch64-linux-gnu-gcc'],
] as const) {
  // A shared object names what others may replace by its symbol; a program has addends alone.
  for (const linked of ['-static-pie', '-shared']) {
    t.test(`${name} ${linked}`, async (t) => {
      const [source, program] = ['main.c', 'main'].map((file) => join(scratchFolder(t), file)) as [string, string];
      writeFileSync(source, SOURCE);
      execFileSync(compiler, ['-O1', '-fPIC', '-fno-inline', '-nostdlib', linked, '-o', program, source]);
      const elf = await ElfFile.open(program);
      const found = new Set<number>();
      codePointers(elf, (address) => found.add(address));
      const symbols = execFileSync('nm', [program], { encoding: 'utf8' });
      const isNamed = (symbol: string): boolean =>
        found.has(Number.parseInt(new RegExp(`^([0-9a-f]+) [tT] ${symbol}$`, 'm').exec(symbols)?.[1] ?? '', 16));
      t.same(['twice', 'thrice', 'never'].map(isNamed), [true, true, false]);
    });
  }
}
