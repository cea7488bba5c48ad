// Counts are of calls: not of the turns of a loop that begins with a function's first instruction.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { parseProbe } from '../../src/probes/index.js';
import { addressesOf, prepare } from '../../src/record/index.js';
import { scratchFolder } from '../support/command.js';

const source = `
        .text
        .globl _start
_start: call spins
        call waits
        ebreak
        .type spins, @function          # nothing says how long it is
spins:  addi a0, a0, -1
        bnez a0, spins
        ret
        .type waits, @function
waits:  addi a0, a0, 1
turn:   addi a0, a0, -1
        bnez a0, turn
        ret
        .size waits, . - waits
`;

t.test('a function that loops to its start is not counted, also where its size is not known', async (t) => {
  const folder = scratchFolder(t);
  const [object, elf] = [join(folder, 'a.o'), join(folder, 'a.elf')];
  execFileSync('riscv64-linux-gnu-as', ['-o', object, '-'], { input: source });
  execFileSync('riscv64-linux-gnu-ld', ['-Ttext=0x80200000', '-o', elf, object]);
  const counted = async (glob: string) => addressesOf(await prepare(elf, [parseProbe(`count:${glob}`)]));
  await t.rejects(counted('spins'), { code: 'PROBE_UNSAFE', hint: /jumps to its first instruction/ });
  t.equal((await counted('waits')).length, 1);
  t.equal((await counted('**')).length, 1);
});
