// What of a kernel that is linked in the upper half runs where it is loaded: assembled kernels, whose comments say what does.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { riscv64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { planEngines } from '../../src/engines/index.js';
import { parseProbe } from '../../src/probes/index.js';
import { runAsLoaded } from '../../src/probes/loaded-code.js';
import { enginePlan, prepare } from '../../src/record/index.js';
import { hartSource } from '../../src/target/index.js';
import { scratchFolder } from '../support/command.js';

/** A function that makes a frame, and calls what it is given. */
const riscv = `
        .macro calls name, callees:vararg
        .type \\name, @function
        .globl \\name
\\name: addi sp, sp, -16
        sd ra, 8(sp)
        .ifnb \\callees
        .irp callee, \\callees
        call \\callee
        .endr
        .endif
        ld ra, 8(sp)
        addi sp, sp, 16
        ret
        .size \\name, . - \\name
        .endm

_start: la sp, stack            # by a register to where it is linked
        call early
        call turn
        la t0, main
        li t1, 1
        add t0, t0, t1
        jr t0
second: mv sp, a1               # a return to where it is linked
        bnez a0, other_way
        call moving
        call main
other_way:
        call other
        j other_way
no_table:                       # never sets a table
        mv sp, a1
        call idle
        j no_table
trap:   csrrw sp, sscratch, sp  # entered by traps alone
        addi sp, sp, -256
        call handle
        sret
        calls early, shared
        calls shared
        calls other, turn, behind
        calls behind
        calls idle
        calls main, work, switch
        calls work
        calls handle, work, switch
        calls switch, turn

        .type turn, @function
turn:   csrw satp, a0
        ret
        .size turn, . - turn

        .type moving, @function
moving: csrw satp, a0
        mv t1, ra
        add ra, t1, t0
        ret
        .size moving, . - moving
        .bss
        .skip 4096
stack:
`;

const aarch64 = `
        .macro calls name, callees:vararg
        .type \\name, %function
        .globl \\name
\\name: stp x29, x30, [sp, #-16]!
        .ifnb \\callees
        .irp callee, \\callees
        bl \\callee
        .endr
        .endif
        ldp x29, x30, [sp], #16
        ret
        .size \\name, . - \\name
        .endm

_start: adrp x8, stack
        add sp, x8, :lo12:stack
        bl drop
        bl early
        bl turn
        ldr x8, =main
        blr x8
1:      b 1b
second: mov sp, x0
        cbnz x1, other_way
        bl turn
        ldr x8, =main
        br x8
other_way:
        bl other
        b other_way
no_table:
        mov sp, x0
        bl idle
        b no_table
trap:   sub sp, sp, #256
        bl handle
        eret
        calls early, shared
        calls shared
        calls other, turn, behind
        calls behind
        calls idle
        calls main, work, switch
        calls work
        calls handle, work, switch
        calls switch, turn

        .type drop, %function
drop:   msr elr_el2, x30
        eret
        .size drop, . - drop

        .type turn, %function
turn:   msr ttbr1_el1, x0
        msr sctlr_el1, x1
        ret
        .size turn, . - turn
        .bss
        .skip 4096
stack:
`;

const kernels = {
  riscv64: { source: riscv, options: ['-march=rv64imac_zicsr'], own: ['moving'] },
  // What ends in an eret has no probe.
  aarch64: { source: aarch64, options: [], own: [] },
};
const early = ['early', 'shared', 'other', 'behind', 'turn'];
const late = ['idle', 'main', 'work', 'handle', 'switch'];

async function reasons(t: Test, arch: keyof typeof kernels, base: string, harts = 2): Promise<Record<string, string>> {
  const folder = scratchFolder(t);
  const file = (name: string): string => join(folder, name);
  const { source, options, own } = kernels[arch];
  writeFileSync(file('k.s'), source);
  execFileSync(`${arch}-linux-gnu-as`, [...options, '-o', file('k.o'), file('k.s')]);
  execFileSync(`${arch}-linux-gnu-ld`, [`-Ttext=${base}`, '-o', file('k.elf'), file('k.o')]);
  const names = [...early, ...late, ...own];
  const program = await prepare(
    file('k.elf'),
    [...names].map((name) => parseProbe(`fn:${name}`)),
  );
  const hart = hartSource(program.arch, program.elf, program.debug, harts);
  const plan = enginePlan(program);
  const { refused } = planEngines({ ...plan, harts, hart });
  return Object.fromEntries(plan.plans.map(({ name }, index) => [name, refused.get(index) ?? '']));
}

for (const arch of ['riscv64', 'aarch64'] as const) {
  const { own } = kernels[arch];
  t.test(`${arch}: what a hart may run before it runs where it is linked is not patched`, async (t) => {
    const isEarly = /^a hart that starts later may run it before its paging is on/;
    const why = await reasons(t, arch, '0xffffffc080200000');
    for (const name of [...early, ...own]) t.match(why[name], isEarly, name);
    for (const name of late) t.notMatch(why[name], isEarly, name);
    const none = [await reasons(t, arch, '0xffffffc080200000', 1), await reasons(t, arch, '0x80200000')];
    for (const one of none) for (const text of Object.values(one)) t.notMatch(text, isEarly);
  });
}

t.test('calls that are thousands deep', async (t) => {
  const deepest = 4000;
  const chain = Array.from({ length: deepest }, (_, i) => `calls f${i}, f${i + 1}`).join('\n');
  const file = (name: string): string => join(folder, name);
  const folder = scratchFolder(t);
  const start = riscv.replace('call early', 'call f0').replace('calls early, shared', `${chain}\ncalls f${deepest}`);
  writeFileSync(file('k.s'), start);
  execFileSync('riscv64-linux-gnu-as', ['-march=rv64imac_zicsr', '-o', file('k.o'), file('k.s')]);
  execFileSync('riscv64-linux-gnu-ld', ['-Ttext=0xffffffc080200000', '-o', file('k.elf'), file('k.o')]);
  const elf = await ElfFile.open(file('k.elf'));
  const loaded = runAsLoaded(elf, riscv64, [elf.entry]);
  for (const name of ['f0', `f${deepest}`, 'turn'])
    t.ok(loaded.has(elf.codes.toCode(elf.symbols.named(name)[0]?.address ?? addr(0n))), name);
});
