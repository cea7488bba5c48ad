import type { TestFunction } from './probe-calls.js';
import { assemble } from './riscv64-machine.js';
import { place } from './riscv64-ring.js';

/**
 * Functions that begin in every way that matters to one who takes their first instructions out. `helper` lies elsewhere, keeps t0 as its
 * own return address where it was called by it, and adds to a5.
 */
const sources = {
  'pushes a frame': `
    addi sp,sp,-32
    sd   ra,24(sp)
    sd   s0,16(sp)
    addi s0,sp,32
    ld   a1,0(a2)
    sd   a1,8(a2)
    call helper
    add  a0,a0,a1
    ld   ra,24(sp)
    ld   s0,16(sp)
    addi sp,sp,32
    ret`,
  'takes a big frame': `
    .option norvc
    addi sp,sp,-2032
    sd   s1,2000(sp)
    mul  s1,a0,a1
    mv   a0,s1
    ld   s1,2000(sp)
    addi sp,sp,2032
    ret`,
  'is a leaf of short instructions': `
    add a0,a0,a1
    xor a1,a1,a0
    sub a0,a0,a1
    and a1,a1,a0
    or  a0,a0,a1
    ret`,
  'branches at once, taken': `
    beq  a6,a6,1f
    li   a0,1
    li   a0,2
    ret
1:  li   a0,3
    ret`,
  'branches at once, not taken': `
    bne  a6,a6,1f
    addi a0,a0,1
    addi a0,a0,2
    ret
1:  li   a0,3
    ret`,
  'branches by a short instruction': `
    mv   a1,a0
    beqz a1,1f
    addi a0,a0,1
    addi a0,a0,2
    ret
1:  li   a0,3
    ret`,
  'compares unsigned': `
    bltu a0,a1,1f
    addi a0,a0,1
    addi a0,a0,2
    ret
1:  li   a0,3
    ret`,
  'makes an address from the pc': `
    .option norvc
1:  auipc a3,%pcrel_hi(data)
    addi  a3,a3,%pcrel_lo(1b)
    ld    a0,0(a3)
    sd    a1,16(a3)
    ret`,
  'makes an address, the other half left behind': `
    mv    a1,a0
1:  auipc a3,%pcrel_hi(data)
    addi  a3,a3,%pcrel_lo(1b)
    ld    a0,0(a3)
    ret`,
  'calls at once': `
    mv   a7,ra
    jal  ra,helper
    mv   a6,ra
    mv   ra,a7
    li   a7,0
    ret`,
  'calls later in its first bytes': `
    mv   a7,ra
    mv   a4,a0
    jal  ra,helper
    mv   a6,ra
    mv   ra,a7
    li   a7,0
    ret`,
  'calls far': `
    mv   a7,ra
1:  auipc ra,%pcrel_hi(helper)
    jalr ra,%pcrel_lo(1b)(ra)
    mv   a6,ra
    mv   ra,a7
    li   a7,0
    ret`,
  'calls through a register': `
    mv   a7,ra
    mv   a4,a0
    mv   a3,a0
    jalr ra,0(s11)
    mv   a6,ra
    mv   ra,a7
    li   a7,0
    ret`,
  'calls through a register at once': `
    mv   a7,ra
    jalr s11
    mv   a6,ra
    mv   ra,a7
    li   a7,0
    ret`,
  'calls by t0': `
    jal  t0,outlined
    mv   a6,t0
    addi a0,a0,5
    addi a0,a0,6
    ret`,
  'jumps away': `
    .option norvc
    j helper
    nop`,
  'jumps away after something': `
    addi a0,a0,1
    j helper
    nop
    nop`,
  'writes a CSR': `
    csrw mscratch,a1
    csrr a0,mscratch
    ret`,
  'calls itself': `
    addi sp,sp,-16
    sd   ra,0(sp)
    sd   s1,8(sp)
    andi s1,a0,3
    beqz s1,1f
    addi a0,s1,-1
    call _start
    add  a0,a0,s1
    j    2f
1:  ld   a0,0(a2)
2:  ld   ra,0(sp)
    ld   s1,8(sp)
    addi sp,sp,16
    ret`,
} as const;

const symbols = { helper: place.helper, outlined: place.helper + 16n, data: place.data };

/** All of them, linked to the same place. */
export const functions: readonly TestFunction[] = Object.entries(sources).map(([name, text]) => ({
  name,
  code: assemble(text, place.code, symbols),
}));

/** `helper` returns through ra, `outlined` through t0. */
export const helper = assemble('.option norvc\nadd a5,a5,a0\nret\nnop\nnop\nadd a5,a5,a1\njr t0', place.helper);
