// Which instructions end traps on x86_64: assembled by GNU as, whose symbols say where each is.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { architectureNamed } from '../../src/arch/index.js';
import { addr, hex } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { scratchFolder } from '../support/command.js';

/** `serial` is what Linux' `sync_core` is: a frame whose address is that of the next instruction. */
const code = `
        .globl _start
_start: mov %ss, %eax
        push %rax
        push %rsp
        pushf
        mov %cs, %eax
        push %rax
        push $1f
serial: iretq
1:      push $4f
ends:   iretq
3:      nop
4:      push $5f
jumped: iretq
5:      jmp jumped
        push $6f
        nop
late:   iretq
6:      sysretq
        .size _start, . - _start
        .type _start, @function
`;

const none = addr(0n);

t.test('an iretq that goes on behind itself ends no trap', async (t) => {
  const folder = scratchFolder(t);
  const file = (name: string): string => join(folder, name);
  writeFileSync(file('k.s'), code);
  execFileSync('as', ['-o', file('k.o'), file('k.s')]);
  execFileSync('ld', ['-Ttext=0xffffffff81000000', '-o', file('k.elf'), file('k.o')]);
  const elf = await ElfFile.open(file('k.elf'));
  const arch = architectureNamed('x86_64');
  await arch?.prepare();
  const at = (name: string) => elf.symbols.named(name)[0]?.address;
  const [start] = elf.symbols.named('_start');
  const bytes = start && elf.bytesAt(start.address, start.size);
  const found = start && bytes && arch?.traps?.find(bytes, start.address);
  const exits = found?.exits.map(({ address }) => hex(address)) ?? [];
  const wanted = ['ends', 'jumped', 'late'].map((name) => hex(at(name) ?? start?.address ?? none));
  t.strictSame(exits.slice(0, 3), wanted, 'another address, a jump to it, something in between');
  t.equal(exits.length, 4, 'and the sysretq');
  t.notOk(exits.includes(hex(at('serial') ?? none)));
});
