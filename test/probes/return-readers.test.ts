// Functions whose returns must not be hooked: compiled to call a profiler that reads their return addresses (gcc's -pg).
import t from 'tap';
import { x86_64 } from '../../src/arch/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { ReturnReaders } from '../../src/probes/return-readers.js';
import { compileC, symbolOf } from '../support/native.js';

const source = 'long f(long x) { return x * 3 + 1; } int main(int count, char **args) { return (int)f(count); }';

for (const [flags, profiler] of [
  [['-pg'], 'mcount'],
  [['-pg', '-mfentry'], '__fentry__'],
  [['-pg', '-no-pie', '-fno-pie'], 'mcount'],
  [['-pg', '-no-pie', '-fno-pie', '-fcf-protection=branch'], 'mcount'],
  [[], undefined],
] as const) {
  t.test(`compiled with '${flags.join(' ')}'`, async (t) => {
    const program = compileC(t, source, flags);
    await x86_64.prepare?.();
    const readers = new ReturnReaders(await ElfFile.open(program), x86_64);
    const objection = readers.objection(symbolOf(program, 'f'));
    t.equal(objection, profiler && `${profiler} reads its return address`);
  });
}
