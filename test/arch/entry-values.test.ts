import t, { type Test } from 'tap';
import { type CompleteArchitecture, riscv64, x86_64 } from '../../src/arch/index.js';
import { addOffset, addr } from '../../src/base/addr.js';
import type { ElfFile } from '../../src/elf/index.js';
import { FlowGraph } from '../../src/probes/flow-graph.js';
import { assemble } from '../support/assembled.js';

/**
 * Code where the first argument's places are written beside it: `in_R_N` stands where R holds it plus N, `at_R_N` where
 * the word N bytes behind what R points to does, `lost_R` and `gone_R` where they may hold something else.
 */
function check(t: Test, arch: CompleteArchitecture, source: string): void {
  const { bytes, labels } = assemble(arch, source, /^(in|lost|at|gone)_/);
  const start = addr(0x10000);
  const elf = { bytesAt: () => bytes } as unknown as ElfFile;
  const range = { low: start, high: addOffset(start, bytes.length) };
  const graph = FlowGraph.of([range], { elf, arch, neverReturns: () => false });
  if (!graph) throw new Error('the code cannot be followed');
  const values = arch.frames.code.follow([{ start, bytes }], graph);
  const [argument = ''] = arch.arguments;
  const numbers = Array.from({ length: arch.frames.registerCount }, (_, number) => number);
  const first = numbers.find((number) => arch.dwarfRegister(number) === argument) ?? -1;
  for (const [label, offset] of labels) {
    const held = values.at(addOffset(start, offset), first);
    const [, what = '', name, wanted] = /^(in|lost|at|gone)_([a-z0-9]+?)(?:_(\d+))?(?:__.*)?$/.exec(label) ?? [];
    const isWord = what === 'at' || what === 'gone';
    const found = held.find(
      ({ register, through }) => arch.dwarfRegister(register) === name && (through !== undefined) === isWord,
    );
    const expected = wanted === undefined ? undefined : Number(wanted);
    t.equal(isWord ? found?.through : found && 0 - found.offset, expected, label);
  }
  t.ok(labels.length > 0);
}

const x86Cases: Readonly<Record<string, string>> = {
  'a call keeps some registers': `
    push rbx
    mov rbx, rdi
    in_rdi_0: in_rbx_0: call ext
    lost_rdi: in_rbx_0__behind: lea rax, [rbx + 24]
    in_rax_24: pop rbx
    lost_rbx: ret`,
  'two ways agree, or do not': `
    mov r12, rdi
    mov r13, rdi
    test esi, esi
    je 1f
    xor r12d, r12d
    1: lost_r12: in_r13_0: ret`,
  'a loop that overwrites it for its next round': `
    mov rbx, rdi
    1: lost_rbx: mov rax, [rbx]
    mov rbx, rax
    test rax, rax
    jne 1b
    lost_rbx__behind: ret`,
  'a loop counts in rcx, and begins again': `
    mov rcx, rdi
    mov rbx, rdi
    1: lost_rbx: mov rbx, [rbx]
    loop 1b
    lost_rcx: in_rdi_0: ret`,
  'a product in two registers': `
    mov r12, rdi
    mulx rbx, r12, rsi
    lost_r12: ret`,
  'half of a register, and conditional moves': `
    mov rbx, rdi
    mov r14, rdi
    mov r15, rdi
    mov bl, 1
    lost_rbx: cmove r14, rsi
    lost_r14: mov r15d, r15d
    lost_r15: movzx eax, byte ptr [rdi + 8]
    in_rdi_0: setne al
    in_rdi_0__set: imul rcx
    ret`,
  'a spill and its reload, and a wide store over it': `
    sub rsp, 64
    gone_rsp: mov [rsp + 8], rdi
    at_rsp_8: mov [rsp + 40], rdi
    call ext
    lost_rdi: at_rsp_8__behind: mov rdi, [rsp + 8]
    in_rdi_0: mov dword ptr [rsp + 12], 0
    at_rsp_40: movups [rsp + 32], xmm0
    gone_rsp__wide:
    mov rsi, [rsp + 40]
    lost_rsi: add rsp, 64
    ret`,
  'a stack that is aligned': `
    push rbp
    mov rbp, rsp
    and rsp, -64
    gone_rsp: sub rsp, 128
    mov [rsp + 24], rdi
    at_rsp_24: call ext
    at_rsp_24__behind: mov rcx, [rsp + 24]
    in_rcx_0: lea rsp, [rbp]
    pop rbp
    gone_rsp__after: ret`,
  'an exception comes back with what every call agrees on': `
    mov rbx, rdi
    mov r12, rdi
    call ext
    mov r12, rax
    call ext
    1: in_rbx_0: lost_r12: ret
    nop
    in_rbx_0__pad: lost_r12__pad: mov rax, rbx
    jmp 1b`,
  'gaps are filled with code that nothing runs': `
    push rbx
    mov rbx, rdi
    jmp 1f
    nop
    1: in_rbx_0: xor ebx, ebx
    call ext
    ret`,
};

const riscvCases: Readonly<Record<string, string>> = {
  'a call keeps some registers': `
    mv s2, a0
    addi s1, a0, 16
    in_a0_0: call ext
    lost_a0: in_s2_0: in_s1_16: mv a1, s1
    in_a1_16: ret`,
  'two ways agree, or do not': `
    mv s2, a0
    mv s1, a0
    beqz a1, 1f
    li s2, 0
    1: lost_s2: in_s1_0: ret`,
  'a spill and its reload': `
    addi sp, sp, -32
    sd a0, 8(sp)
    call ext
    lost_a0: ld a0, 8(sp)
    in_a0_0: sw zero, 12(sp)
    ld a1, 8(sp)
    lost_a1: addi sp, sp, 32
    ret`,
  'what is not decoded overwrites it, or a floating-point register of its number': `
    mv s1, a0
    mv s2, a0
    mv s3, a0
    fadd.d fa0, fa0, fa0
    in_a0_0: fcvt.lu.d s2, fa0
    lost_s2: .insn r 0x33, 6, 0x10, s3, a0, a1 # sh3add
    lost_s3: .2byte 0x9ce1 # c.zext.b s1
    lost_s1: fmv.x.d a0, fa0
    lost_a0: ret`,
};

for (const [arch, cases] of [
  [x86_64, x86Cases],
  [riscv64, riscvCases],
] as const) {
  t.test(arch.name, async (t) => {
    await arch.prepare();
    for (const [name, source] of Object.entries(cases)) t.test(name, async (t) => check(t, arch, source));
  });
}
