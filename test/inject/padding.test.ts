// A function shorter than the jump has it in the padding behind it, where compilers align the next one: only there.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import type { Recording } from '../support/recording.js';

const calls = 300;
const source = `
        .intel_syntax noprefix
        .text
        .macro fn name
        .globl \\name
        .type \\name, @function
\\name:
        .endm
        .macro over name
        .size \\name, . - \\name
        .endm

        .p2align 4
        fn nops
        xor eax, eax
        ret
        over nops
        .p2align 4, 0x90
        fn traps
        ret
        over traps
        .p2align 4, 0xcc
        fn crowded
        ret
        over crowded
        fn neighbour
        mov eax, 1
        ret
        over neighbour
        .p2align 4, 0x90
        fn labelled
        ret
        over labelled
        nop
        .globl behind
behind: nop
        nop
        nop
        nop
        ret
        .p2align 4, 0x90
        fn data
        ret
        over data
        .quad 0x1122334455667788
        .p2align 4
        fn main
        push rbx
        mov ebx, ${calls}
again:  call nops
        call traps
        call crowded
        call neighbour
        call labelled
        call behind
        call data
        dec ebx
        jnz again
        pop rbx
        xor eax, eax
        ret
        over main
        .section .note.GNU-stack,"",@progbits
`;

t.test('where nothing else is, the padding holds the jump; every call is seen', async (t) => {
  const folder = scratchFolder(t);
  const [assembly, program] = [join(folder, 'short.s'), join(folder, 'short')];
  writeFileSync(assembly, source);
  execFileSync('gcc', ['-no-pie', '-o', program, assembly]);
  const names = ['nops', 'traps', 'crowded', 'neighbour', 'labelled', 'data'];
  const probes = names.flatMap((name) => ['-p', `count:${name}`]);
  const out = ['--engine', 'mixed', '--json', '-o', join(folder, 'out.pftrace')];
  const output = await rsptrace('run', ...out, ...probes, program).json<
    Recording & { readonly counts: Recording['functions'] }
  >();
  const engines = new Map(output.probes.map((probe) => [probe.function, probe.engine]));
  t.same(Object.fromEntries(engines), {
    ...{ nops: 'target', traps: 'target', neighbour: 'target' },
    // Another function, a label, and no padding at all.
    ...{ crowded: 'stop', labelled: 'stop', data: 'stop' },
  });
  t.same(
    names.map((name) => output.counts.find((row) => row.function === name)?.calls),
    names.map(() => calls),
  );
});
