// A hart that waits for an interrupt stands behind that instruction; one whose last instruction ends like it, or has it
// within, does not.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { architectureNamed } from '../../../src/arch/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import type { Session } from '../../../src/rsp/index.js';
import { hartStack } from '../../../src/target/stacks/index.js';
import { Stacks } from '../../../src/target/unwind/index.js';
import { scratchFolder } from '../../support/command.js';

const source = `.globl _start
_start: jmp _start
.type wait, @function
wait: push %rbp
      mov %rsp, %rbp
      mov -12(%rbp), %eax   # 8b 45 f4
      nop
      nop
1:    hlt
      jmp 1b
.size wait, . - wait
`;

t.test('what waits is an instruction, not its byte', async (t) => {
  const path = join(scratchFolder(t), 'waits');
  writeFileSync(`${path}.s`, source);
  execFileSync('as', [`${path}.s`, '-o', `${path}.o`]);
  execFileSync('ld', [`${path}.o`, '-o', path]);
  const elf = await ElfFile.open(path);
  const arch = architectureNamed('x86_64');
  const [wait] = elf.symbols.named('wait');
  if (!arch || !wait) return t.fail('no function');
  await arch.prepare();
  const stacks = new Stacks(elf, arch);
  const nothing = { read: async () => undefined };
  const session = {
    features: { transfer: new Set(['auxv']) },
    memory: () => nothing,
    physicalMemory: async () => undefined,
  } as unknown as Session;
  const isExact = async (offset: number): Promise<boolean | undefined> => {
    const known = new Map([
      ['rip', wait.address + BigInt(offset)],
      ['rsp', 0x7000n],
      ['rbp', 0x7000n],
    ]);
    const registers = { register: (name: string) => known.get(name) };
    return (await hartStack(session, '0', arch, stacks, { registers })).stack.frames[0]?.exact;
  };
  t.same(await Promise.all([4, 7, 8, 9].map(isExact)), [true, true, true, true]);
  t.equal(await isExact(10), false, 'behind hlt');
});
