// Where a stub says that a position-independent program was loaded, told by a stub that says what the test wants. Real ones: test/cli/native.test.ts.
import t from 'tap';
import { ElfFile } from '../../src/elf/index.js';
import { loadedElf } from '../../src/target/load-bias.js';
import { open } from '../rsp/open.js';
import { compileC, symbolOf } from '../support/native.js';

t.test('qOffsets, where there is no auxiliary vector', async (t) => {
  const program = compileC(t, 'int main(void) { return 0; }', ['-pie']);
  const elf = await ElfFile.open(program);
  for (const [answer, bias] of [
    ['Text=555000;Data=555000;Bss=555000', 0x555000n],
    ['Text=0;Data=0;Bss=0', 0n],
    // Segments, of which each has its own place.
    ['TextSeg=10000;DataSeg=20000', 0n],
    ['Text=1000;Data=2000', 0n],
    ['', 0n],
    ['E01', 0n],
  ] as const) {
    const { session } = await open(t, { qOffsets: answer });
    const loaded = await loadedElf(session, elf);
    t.equal(loaded.entry, symbolOf(program, '_start') + bias, answer);
    t.equal(loaded === elf, bias === 0n, 'read again only where it has to be');
  }
});

t.test('a program that is linked for its place is not asked about', async (t) => {
  const elf = await ElfFile.open(compileC(t, 'int main(void) { return 0; }', ['-no-pie']));
  const { stub, session } = await open(t, { qOffsets: 'Text=555000;Data=555000' });
  t.equal(await loadedElf(session, elf), elf);
  t.same(stub.heard, []);
});
