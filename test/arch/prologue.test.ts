import fc from 'fast-check';
import t from 'tap';
import { riscv64, x86_64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { assemble } from '../support/assembled.js';
import { check, describe } from './frame-labels.js';

const riscvCases: Readonly<Record<string, string>> = {
  'a frame, its epilogue, and an early return before it': `
    here_0_ra: addi sp, sp, -32
    here_32_ra: sd ra, 24(sp)
    sd s0, 16(sp)
    beqz a0, 1f
    here_32_ra__body: call ext
    here_32_at_8: ld ra, 24(sp)
    ld s0, 16(sp)
    here_32_ra__restored: addi sp, sp, 32
    here_0_ra__gone: ret
    1: here_32_ra__other_way: ld s0, 16(sp)
    addi sp, sp, 32
    here_0_ra__other_return: ret`,
  'a large frame by lui and sub, and one in two steps': `
    addi sp, sp, -2032
    sd ra, 2024(sp)
    here_2032_ra: li t0, 40000
    sub sp, sp, t0
    here_42032_ra: jal ext
    here_42032_at_8: lui t0, 10
    addi t0, t0, -960
    add sp, sp, t0
    here_2032_at_8: ld ra, 2024(sp)
    addi sp, sp, 2032
    ret`,
  'a compressed store inside a 4-byte instruction is not one': `
    addi sp, sp, -16
    # lui a5, 0xe4060: its upper half reads c.sdsp ra, 8(sp)
    lui a5, 0xe4060
    here_16_ra: call ext
    here_16_undefined: ret`,
  'a store of another register to the usual place is not a saved return address': `
    addi sp, sp, -16
    sd a0, 8(sp)
    here_16_ra: sd ra, 0(sp)
    jal ext
    here_16_at_16: ld ra, 0(sp)
    addi sp, sp, 16
    ret`,
  'behind a breakpoint that is not come back from stands code with another frame': `
    beqz a0, 1f
    addi sp, sp, -16
    sd ra, 8(sp)
    call ext
    bnez a0, 2f
    here_16_at_8: ld ra, 8(sp)
    addi sp, sp, 16
    ret
    1: here_0_ra: ebreak
    2: here_16_at_8__behind: ld ra, 8(sp)
    addi sp, sp, 16
    ret`,
  'a list in the frame: who was given its address has changed where it points': `
    addi sp, sp, -48
    sd ra, 40(sp)
    sd s0, 32(sp)
    addi s0, sp, 48
    mv a0, sp
    sd a0, 0(sp)
    call ext
    ld a5, 0(sp)
    sd zero, 40(a5)
    here_48_at_8: ld ra, 40(sp)
    ld s0, 32(sp)
    addi sp, sp, 48
    ret`,
  'behind a return, in a function that calls nothing: the frame of its body': `
    addi sp, sp, -16
    sd s0, 8(sp)
    sd ra, 0(sp)
    addi s0, sp, 16
    nop
    li a0, 0
    li a1, 0
    ld s0, 8(sp)
    addi sp, sp, 16
    ret
    here_16_ra: ld s0, 8(sp)
    addi sp, sp, 16
    here_0_ra: ret`,
  'a shrink-wrapped prologue: the way without a frame stays without': `
    bnez a0, 1f
    here_0_ra: li a0, 1
    ret
    1: here_0_ra__cold: addi sp, sp, -64
    sd ra, 56(sp)
    jal ext
    here_64_at_8: ld ra, 56(sp)
    addi sp, sp, 64
    j 2f
    nop
    2: here_0_ra__joined: ret`,
  'behind a call that never returns stands code with another frame': `
    addi sp, sp, -48
    sd ra, 40(sp)
    bnez a0, 1f
    here_48_ra: addi sp, sp, 48
    here_0_ra: bnez a1, 2f
    ret
    1: here_48_ra__cold: jal panic
    2: here_0_ra__not_48: ret`,
  'a frame pointer carries a stack pointer that nobody can follow': `
    addi sp, sp, -32
    sd ra, 24(sp)
    sd s0, 16(sp)
    addi s0, sp, 32
    here_32_ra: sub sp, sp, a0
    fp_0_ra: jal ext
    fp_0_at_8: addi sp, s0, -32
    here_32_at_8: ld ra, 24(sp)
    ld s0, 16(sp)
    addi sp, sp, 32
    ret`,
  'a large frame that is touched page by page': `
    lui t1, 4
    sub t1, sp, t1
    lui t2, 1
    1: r6_16384_ra: sub sp, sp, t2
    sd zero, 0(sp)
    bne sp, t1, 1b
    here_16384_ra: addi sp, sp, -8
    here_16392_ra: nop
    li t0, 16392
    add sp, sp, t0
    ret`,
  'a jump table: the code behind it has the frame of the jump': `
    addi sp, sp, -80
    sd ra, 72(sp)
    slli a0, a0, 2
    jr a0
    here_80_ra: li a0, 3
    j 1f
    here_80_ra__second: li a0, 4
    1: ld ra, 72(sp)
    addi sp, sp, 80
    ret`,
  'code that gives itself a stack was called by nobody': `
    la sp, stack
    bottom: jal ext
    bottom__too: j bottom
    stack: nop`,
  'a trap handler that leaves sepc where it is': `
    addi sp, sp, -256
    trap_here_256_ra: sd ra, 0(sp)
    csrr a1, sepc
    jal ext
    trap_here_256_ra__called: ld ra, 0(sp)
    addi sp, sp, 256
    trap_here_0_ra: sret`,
  'a trap handler that keeps mepc in its frame and swaps stacks': `
    csrrw sp, mscratch, sp
    trap_here_0_ra_spin_4928: addi sp, sp, -272
    sd t0, 8(sp)
    csrr t0, mscratch
    sd t0, 16(sp)
    csrr t0, mepc
    trap_here_272_ra_sp_m256: sd t0, 256(sp)
    trap_here_272_at_16_sp_m256: jal ext
    ld t0, 256(sp)
    csrw mepc, t0
    mret`,
};

const x86Cases: Readonly<Record<string, string>> = {
  'pushes, a frame, an early return and the epilogue': `
    here_8_at_8: push rbp
    here_16_at_8: push rbx
    sub rsp, 0x18
    here_48_at_8: test edi, edi
    je 1f
    call ext
    here_48_at_8__back: add rsp, 0x18
    pop rbx
    here_16_at_8__out: pop rbp
    here_8_at_8__ret: ret
    1: here_48_at_8__other: add rsp, 0x18
    pop rbx
    pop rbp
    here_8_at_8__second: ret`,
  'a realigned stack is told by rbp, until leave': `
    push rbp
    mov rbp, rsp
    here_16_at_8: and rsp, -64
    fp_16_at_8: sub rsp, 0x80
    call ext
    fp_16_at_8__back: leave
    here_8_at_8: ret`,
  'a leaf in the red zone': `
    mov qword ptr [rsp - 8], rdi
    here_8_at_8: mov rax, qword ptr [rsp - 8]
    here_8_at_8__too: ret`,
  'a frame whose size is probed by a call': `
    mov eax, 0x5000
    call probestack
    here_8_at_8: sub rsp, rax
    here_20488_at_8: add rsp, 0x5000
    ret`,
  'a frame that is touched page by page': `
    lea r11, [rsp - 0x8000]
    1: r11_32776_at_8: sub rsp, 0x1000
    mov qword ptr [rsp], 0
    cmp rsp, r11
    jne 1b
    here_32776_at_8: add rsp, 0x8000
    ret`,
  'the flags are pushed and popped': `
    here_8_at_8: pushfq
    here_16_at_8: pop rax
    here_8_at_8__popped: cli
    ret`,
  'a segment register takes as much of the stack as others': `
    push fs
    here_16_at_8: push gs
    here_24_at_8: pop gs
    pop fs
    here_8_at_8: ret`,
  'behind a call that never returns stands code with another frame': `
    sub rsp, 0x28
    test edi, edi
    jne 1f
    here_48_at_8: add rsp, 0x28
    test esi, esi
    jne 2f
    ret
    1: here_48_at_8__cold: call panic
    2: here_8_at_8: ret`,
  'a jump out of the function with the frame up comes back behind itself': `
    call ext
    push rbx
    test edi, edi
    jne 1f
    call ext
    pop rbx
    ret
    1: push rax
    here_24_at_8: jmp . + 0x1000000
    here_24_at_8__behind: pop rax
    here_16_at_8: pop rbx
    ret`,
  'an interrupt handler: what the CPU has pushed lies above': `
    push rax
    trap_here_16_at_8_sp_16: push rcx
    cld
    call ext
    trap_here_24_at_8_sp_16: pop rcx
    pop rax
    trap_here_8_at_8_sp_16: iretq`,
  'an exception handler with an error code': `
    push rax
    trap_here_16_up_0_sp_24: call ext
    pop rax
    trap_here_8_up_0_sp_24: add rsp, 8
    trap_here_0_up_0_sp_24: iretq`,
  'code that gives itself a stack was called by nobody': `
    lea rsp, [rip + stack]
    bottom: call ext
    hlt
    stack: nop`,
};

for (const [arch, cases] of [
  [riscv64, riscvCases],
  [x86_64, x86Cases],
] as const) {
  for (const [name, source] of Object.entries(cases)) {
    t.test(`${arch.name}: ${name}`, async (t) => {
      await arch.prepare();
      check(t, arch, source);
    });
  }

  t.test(`${arch.name}: whatever the bytes are, they are followed to an end`, async (t) => {
    await arch.prepare();
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 600 }), (bytes) => {
        const frames = arch.frames.code.analyse([{ start: addr(0x1000), bytes }]);
        for (let offset = 0; offset < bytes.length; offset++) {
          frames.at(addr(0x1000 + offset));
          frames.behindCall(addr(0x1000 + offset));
        }
      }),
      { seed: 2, numRuns: arch.name === 'riscv64' ? 600 : 150 },
    );
    t.pass();
  });
}

t.test('a part that the compiler moved away has the frame of the jump that leads there', async (t) => {
  const { bytes } = assemble(
    riscv64,
    'here: addi sp, sp, -32\nsd ra, 24(sp)\n.word 0x7f80a063\nld ra, 24(sp)\naddi sp, sp, 32\nret',
  );
  // .word: bltu ... is replaced below by `bnez a0, +0x800` as the ISA manual encodes it (imm[11] in bit 7).
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(4, 0x000510e3, true);
  const start = addr(0x10000);
  const cold = { start: addr(0x10000 + 4 + 0x800), bytes: assemble(riscv64, 'here: addi a0, a0, 1\nli a1, 1').bytes };
  const alone = riscv64.frames.code.analyse([cold]).at(cold.start);
  t.equal(describe(riscv64, alone), 'here_0_ra');
  const whole = riscv64.frames.code.analyse([{ start, bytes }, cold]).at(cold.start);
  t.equal(describe(riscv64, whole), 'here_32_ra');
});
