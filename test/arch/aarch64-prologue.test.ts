import fc from 'fast-check';
import t from 'tap';
import { aarch64 } from '../../src/arch/index.js';
import { addOffset, addr } from '../../src/base/addr.js';
import { assemble } from '../support/assembled.js';
import { check, describe } from './frame-labels.js';

const frames: Readonly<Record<string, string>> = {
  'the frame record at the bottom, as gcc has it, and an early return before it': `
    here_0_ra: cbz x0, 1f
    stp x29, x30, [sp, #-48]!
    here_48_ra: mov x29, sp
    stp x19, x20, [sp, #16]
    bl ext
    here_48_at_40__body: ldp x19, x20, [sp, #16]
    ldp x29, x30, [sp], #48
    here_0_ra__gone: ret
    1: here_0_ra__early: mov x0, #1
    ret`,
  'the frame record at the top, as LLVM has it': `
    sub sp, sp, #64
    here_64_ra: stp x29, x30, [sp, #48]
    here_64_ra__saved: add x29, sp, #48
    bl ext
    here_64_at_8__body: ldp x29, x30, [sp, #48]
    here_64_ra__restored: add sp, sp, #64
    here_0_ra: ret`,
  'tags of the stack, which LLVM sets with a frame, and takes back with it': `
    .arch armv8.5-a+memtag
    stgp x29, x30, [sp, #-32]!
    here_32_ra: irg x8, sp
    addg x9, x8, #16, #1
    stg x9, [x9]
    bl ext
    here_32_at_24__body: ldp x29, x30, [sp]
    here_32_ra__back: st2g sp, [sp], #32
    here_0_ra: ret`,
  'no frame pointer': `
    str x30, [sp, #-16]!
    here_16_ra: bl ext
    here_16_at_16: ldr x30, [sp], #16
    here_0_ra: b ext`,
  'below a variable array the frame pointer knows': `
    stp x29, x30, [sp, #-32]!
    mov x29, sp
    sub sp, sp, x0
    fp_32_ra: bl ext
    fp_32_at_24: mov sp, x29
    here_32_at_24: ldp x29, x30, [sp], #32
    ret`,
  'an aligned stack': `
    stp x29, x30, [sp, #-16]!
    mov x29, sp
    sub x9, sp, #64
    and sp, x9, #0xffffffffffffffc0
    fp_16_ra: bl ext
    fp_16_at_8: mov sp, x29
    here_16_at_8: ldp x29, x30, [sp], #16
    ret`,
  'a large frame by two immediates, and one by a register': `
    stp x29, x30, [sp, #-16]!
    sub sp, sp, #16, lsl #12
    sub sp, sp, #2064
    here_67616_ra: bl ext
    mov x9, #0x5678
    movk x9, #1, lsl #16
    sub sp, sp, x9
    here_155288_at_8: add sp, sp, x9
    add sp, sp, #2064
    add sp, sp, #16, lsl #12
    ldp x29, x30, [sp], #16
    here_0_ra: ret`,
  'a large frame that is touched page by page': `
    stp x29, x30, [sp, #-16]!
    sub x9, sp, #5, lsl #12
    1: sub sp, sp, #1, lsl #12
    str xzr, [sp]
    cmp sp, x9
    b.ne 1b
    here_20496_ra: sub sp, sp, #32
    here_20528_ra: bl ext
    here_20528_at_8: mov sp, x29
    ret`,
  'a signed return address is at its place all the same': `
    paciasp
    stp x29, x30, [sp, #-16]!
    here_16_ra: bl ext
    here_16_at_8: ldp x29, x30, [sp], #16
    here_0_ra: retaa`,
  'x30 is overwritten by a call in a function that does not save it': `
    sub sp, sp, #16
    here_16_ra: bl ext
    here_16_undefined: brk #1`,
  'a jump table': `
    stp x29, x30, [sp, #-32]!
    adrp x8, table
    add x8, x8, :lo12:table
    adr x9, 1f
    ldrb w10, [x8, x0]
    add x9, x9, x10, lsl #2
    br x9
    1: here_32_ra: mov x0, #1
    ldp x29, x30, [sp], #32
    ret
    here_32_ra__other: mov x0, #2
    ldp x29, x30, [sp], #32
    ret
    table: .byte 0, 3`,
  'what atomics, loads of vectors and conversions overwrite': `
    mov x12, x30
    mov x13, x30
    ldadd x11, x12, [x0]
    fmov x13, d0
    mov x14, x30
    mov x30, #0
    here_0_register: stxr w14, x11, [x0]
    here_0_undefined: ret`,
  'a trap handler': `
    trap_here_0_ra: sub sp, sp, #272
    stp x0, x1, [sp]
    stp x29, x30, [sp, #16]
    mrs x0, elr_el1
    mrs x1, spsr_el1
    stp x0, x1, [sp, #32]
    trap_here_272_at_240: bl ext
    trap_here_272_at_240__body: ldp x0, x1, [sp, #32]
    msr elr_el1, x0
    msr spsr_el1, x1
    ldp x29, x30, [sp, #16]
    ldp x0, x1, [sp]
    add sp, sp, #272
    eret`,
  'nobody called code that makes its stack': `
    here_0_ra: adrp x0, stack
    add x0, x0, :lo12:stack
    mov sp, x0
    bottom: bl ext
    1: b 1b
    stack: nop`,
};

for (const [name, source] of Object.entries(frames)) {
  t.test(name, async (t) => check(t, aarch64, source));
}

t.test('a vector has made the frame, and several handlers share their end, as Linux has it', (t) => {
  const source = `
    stp x0, x1, [sp]
    stp x28, x29, [sp, #224]
    add x21, sp, #336
    mrs x22, elr_el1
    mrs x23, spsr_el1
    stp x30, x21, [sp, #240]
    stp x29, x22, [sp, #304]
    add x29, sp, #304
    stp x22, x23, [sp, #256]
    bl ext
    behind: b end
    end: ldp x21, x22, [sp, #256]
    msr elr_el1, x21
    msr spsr_el1, x22
    ldp x0, x1, [sp]
    ldp x28, x29, [sp, #224]
    ldr x30, [sp, #240]
    add sp, sp, #336
    eret
    ext: ret`;
  const { bytes, labels } = assemble(aarch64, source, /^(behind|end)$/);
  const [behind = 0, end = 0] = ['behind', 'end'].map((name) => labels.find(([label]) => label === name)?.[1]);
  const start = addr(0x10000);
  const handler = [{ start, bytes: bytes.subarray(0, end) }];
  const rest = { start: addOffset(start, end), bytes: bytes.subarray(end) };
  const { code } = aarch64.frames;
  const at = (frames: ReturnType<typeof code.analyse>) =>
    describe(aarch64, frames.behindCall(addOffset(start, behind)));
  t.equal(at(code.analyse(handler, (to) => (to === rest.start ? [rest] : []))), 'trap_here_336_at_24_sp_m88');
  t.equal(at(code.analyse(handler)), 'here_0_up_240', 'by itself it looks like a function');
  t.equal(describe(aarch64, code.analyse([rest]).at(rest.start)), 'trap_here_336_ra');
  t.end();
});

t.test('whatever the bytes are, they are followed to an end', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 4, maxLength: 600 }), (bytes) => {
      const found = aarch64.frames.code.analyse([{ start: addr(0x1000), bytes }]);
      for (let offset = 0; offset < bytes.length; offset += 4) {
        found.at(addr(0x1000 + offset));
        found.behindCall(addr(0x1000 + offset));
      }
      aarch64.codeFlow.steps(bytes, addr(0x1000));
    }),
    { seed: 2, numRuns: 1200 },
  );
  t.pass();
});
