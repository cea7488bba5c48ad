import t from 'tap';
import { type CompleteArchitecture, riscv64, x86_64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { assemble } from '../support/assembled.js';

await x86_64.prepare?.();
const START = addr(0x10000);

/** Code, and what it does with its caller's frame: `out` is a label behind it, another function. */
const cases: readonly (readonly [CompleteArchitecture, string, string, object])[] = [
  [x86_64, 'an argument on the stack', 'mov rax, [rsp+8]; ret', { isUsed: true }],
  [
    x86_64,
    'one behind a frame',
    'push rbx; sub rsp, 64; mov rax, [rsp+80]; add rsp, 64; pop rbx; ret',
    { isUsed: true },
  ],
  [x86_64, 'by the frame pointer', 'push rbp; mov rbp, rsp; mov rax, [rbp+16]; pop rbp; ret', { isUsed: true }],
  [x86_64, 'its address', 'sub rsp, 24; lea rdi, [rsp+32]; call out; add rsp, 24; ret', { isUsed: true }],
  [
    x86_64,
    'its own frame alone',
    'push rbx; sub rsp, 64; mov [rsp+56], rdi; mov rax, [rsp+56]; add rsp, 64; pop rbx; ret',
    {},
  ],
  [x86_64, 'below the stack pointer', 'mov [rsp-8], rdi; mov rax, [rsp-8]; ret', {}],
  [x86_64, 'an aligned frame', 'push rbp; mov rbp, rsp; and rsp, -32; sub rsp, 64; mov [rsp+40], rdi; leave; ret', {}],
  [x86_64, 'its return address', 'pop rdx; mov eax, 1; push rdx; ret', { isUsed: true, readsReturn: true }],
  [
    x86_64,
    'behind what is not decoded',
    '.byte 0xc4, 0xe2, 0x7b, 0x49, 0xc0; ret',
    { isUsed: true, readsReturn: true, jumpsAnywhere: true },
  ],
  [x86_64, 'zeros behind it', 'mov eax, edi; ret; .zero 3', {}],
  [x86_64, 'that, read', 'mov rax, [rsp]; ret', { isUsed: true, readsReturn: true }],
  [
    x86_64,
    'that, behind a frame',
    'push rbx; sub rsp, 64; mov rax, [rsp+72]; add rsp, 64; pop rbx; ret',
    { isUsed: true, readsReturn: true },
  ],
  [x86_64, 'a tail jump', 'add rdi, 8; jmp out', { jumps: true }],
  [x86_64, 'a tail jump to a pointer', 'mov rax, [rdi]; jmp [rax+24]', { jumpsAnywhere: true }],
  [
    x86_64,
    'a jump table',
    'push rbx; lea rcx, out[rip]; movsxd rax, dword ptr [rcx+rdi*4]; add rax, rcx; jmp rax; pop rbx; ret',
    {},
  ],
  [riscv64, 'an argument on the stack', 'ld a0, 0(sp); ret', { isUsed: true }],
  [
    riscv64,
    'one behind a frame',
    'addi sp, sp, -32; sd ra, 24(sp); ld a0, 40(sp); ld ra, 24(sp); addi sp, sp, 32; ret',
    { isUsed: true },
  ],
  [
    riscv64,
    'by the frame pointer',
    'addi sp, sp, -16; sd ra, 8(sp); sd s0, 0(sp); addi s0, sp, 16; ld a0, 8(s0); ld s0, 0(sp); ld ra, 8(sp); addi sp, sp, 16; ret',
    { isUsed: true },
  ],
  [
    riscv64,
    'its own frame alone',
    'addi sp, sp, -16; sd ra, 8(sp); sd s0, 0(sp); addi s0, sp, 16; sd a0, -16(s0); ld s0, 0(sp); ld ra, 8(sp); addi sp, sp, 16; ret',
    {},
  ],
  [riscv64, 'its return address', 'mv a0, ra; ret', { readsReturn: true }],
  [riscv64, 'that, kept elsewhere', 'sd ra, 0(a0); li a0, 0; ret', { readsReturn: true }],
  [riscv64, 'a tail jump to a pointer', 'ld a5, 8(a0); jr a5', { jumpsAnywhere: true }],
];

for (const [arch, what, code, does] of cases) {
  t.test(`${arch.name}: ${what}`, async (t) => {
    const { bytes, labels } = assemble(arch, `${code.replaceAll('; ', '\n')}\nout: nop\n`, /^out$/);
    const [, end = bytes.length] = labels[0] ?? [];
    const found = arch.frames.code.analyse([{ start: START, bytes: bytes.subarray(0, end) }]).callersFrame();
    const expected = { isUsed: false, readsReturn: false, jumps: false, jumpsAnywhere: false, ...does };
    t.strictSame({ ...found, jumps: found.jumps.includes(addr(START + BigInt(end))) }, expected);
  });
}
