import { assemble, place } from './aarch64-machine.js';
import type { TestFunction } from './probe-calls.js';

/**
 * Functions that begin in every way that matters to one who takes their first instructions out. `helper` lies elsewhere
 * and adds to x5. Each is called indirectly, in guarded memory.
 */
const sources = {
  'pushes a frame': `
    stp  x29, x30, [sp, #-32]!
    str  x19, [sp, #16]
    mov  x29, sp
    ldr  x1, [x2]
    str  x1, [x2, #8]
    bl   helper
    add  x0, x0, x1
    ldr  x19, [sp, #16]
    ldp  x29, x30, [sp], #32
    ret`,
  'takes a big frame': `
    sub  sp, sp, #2032
    str  x19, [sp, #2000]
    mul  x19, x0, x1
    mov  x0, x19
    ldr  x19, [sp, #2000]
    add  sp, sp, #2032
    ret`,
  'is a leaf': `
    add x0, x0, x1
    eor x1, x1, x0
    sub x0, x0, x1
    and x1, x1, x0
    orr x0, x0, x1
    ret`,
  'returns at once': 'ret\n nop\n nop',
  'uses the flags of its caller': `
    cset x0, hi
    cset x1, mi
    adc  x3, x3, x4
    ret`,
  'sets flags': `
    cmp  x0, x1
    cset x0, lo
    adds x1, x1, x3
    ret`,
  ...branches('b.eq', 'cmp x6, x6'),
  ...branches('b.ne', 'cmp x6, x6'),
  'branches by a condition at once': `
    b.hi 1f
    mov  x0, #1
    mov  x0, #2
    ret
1:  mov  x0, #3
    ret`,
  'branches by a condition that always holds': `
    .4byte 0x5400008e // b.al 1f
    mov  x0, #1
    mov  x0, #2
    ret
1:  mov  x0, #3
    ret`,
  ...branchesBy(
    'cbz x19,',
    'cbnz x19,',
    'cbz w20,',
    'cbnz w20,',
    'tbz x20, #2,',
    'tbnz x20, #2,',
    'tbz x20, #45,',
    'tbnz x20, #45,',
    'tbnz x4, #63,',
  ),
  'makes an address': `
    adr  x3, 1f
    ldr  x0, [x3]
    add  x0, x0, x1
    ret
1:  .quad 0x123456789abcdef`,
  'makes an address of any distance': `
    adr  x3, _start - 123455
    mov  x0, x3
    nop
    ret`,
  'makes the address of a page': `
    adrp x3, data
    add  x3, x3, :lo12:data
    ldr  x0, [x3]
    str  x1, [x3, #16]
    ret`,
  'makes the address of a page, the other half left behind': `
    mov  x1, x0
    mov  x4, x0
    adrp x3, data
    add  x3, x3, :lo12:data
    ldr  x0, [x3]
    ret`,
  ...literals('ldr x3,', 'ldr w3,', 'ldrsw x3,', 'prfm pldl1keep,'),
  ...vectorLiterals('s1', 'd1', 'q1'),
  'works with vectors': `
    fmov d1, x0
    add  v1.2d, v1.2d, v1.2d
    fmov x0, d1
    ret`,
  'calls at once': `
    bl   helper
    mov  x6, x30
    mov  x30, x27
    ret`,
  'calls in its first bytes': `
    mov  x7, x30
    mov  x4, x0
    bl   helper
    mov  x6, x30
    mov  x30, x7
    mov  x7, #0
    ret`,
  'calls a second time': `
    mov  x7, x30
    bl   helper
    bl   helper
    mov  x6, x30
    mov  x30, x7
    mov  x7, #0
    ret`,
  'calls through a register': `
    mov  x7, x30
    mov  x4, x0
    blr  x28
    mov  x6, x30
    mov  x30, x7
    mov  x7, #0
    ret`,
  'calls through a register at once': `
    bti  c
    blr  x28
    mov  x6, x30
    mov  x30, x27
    ret`,
  'jumps away': `
    b    helper
    nop
    nop`,
  'jumps away after something': `
    add  x0, x0, #1
    b    helper
    nop
    nop`,
  'jumps through a register': `
    mov  x17, x28
    mov  x3, x17
    br   x17
    nop`,
  'writes a system register': `
    msr  tpidr_el1, x1
    mrs  x0, tpidr_el1
    nop
    ret`,
  'has a landing pad': `
    bti  c
    add  x0, x0, x1
    eor  x1, x1, x0
    sub  x0, x0, x1
    ret`,
  'signs its return address': `
    paciasp
    stp  x29, x30, [sp, #-16]!
    bl   helper
    ldp  x29, x30, [sp], #16
    autiasp
    ret`,
  'signs its return address behind a landing pad': `
    bti  c
    paciasp
    stp  x29, x30, [sp, #-16]!
    bl   helper
    ldp  x29, x30, [sp], #16
    retaa`,
  'signs its return address with the other key': `
    pacibsp
    sub  sp, sp, #16
    str  x30, [sp]
    bl   helper
    ldr  x30, [sp], #16
    retab`,
  'calls itself': `
    stp  x29, x30, [sp, #-32]!
    stp  x19, x20, [sp, #16]
    and  x19, x0, #3
    cbz  x19, 1f
    sub  x0, x19, #1
    bl   _start
    add  x0, x0, x19
    b    2f
1:  ldr  x0, [x2]
2:  ldp  x19, x20, [sp, #16]
    ldp  x29, x30, [sp], #32
    ret`,
};

function branches(op: string, before: string): Record<string, string> {
  return { [`branches by ${op}`]: `${before}\n ${op} 1f\n mov x0, #1\n mov x0, #2\n ret\n1: mov x0, #3\n ret` };
}

function branchesBy(...ops: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    ops.map((op) => [`branches by ${op}`, `${op} 1f\n mov x0, #1\n mov x0, #2\n ret\n1: mov x0, #3\n ret`]),
  );
}

function literals(...ops: readonly string[]): Record<string, string> {
  const code = (op: string): string => `${op} 1f\n add x0, x0, x3\n nop\n ret\n.balign 8\n1: .quad 0xfedcba98f6543210`;
  return Object.fromEntries(ops.map((op) => [`loads a literal by ${op}`, code(op)]));
}

function vectorLiterals(...registers: readonly string[]): Record<string, string> {
  const code = (name: string): string =>
    `ldr ${name}, 1f\n umov x0, v1.d[0]\n umov x3, v1.d[1]\n ret\n.balign 16\n1: .quad 0xfedcba98f6543210, 0x1122334455667788`;
  return Object.fromEntries(registers.map((name) => [`loads a literal into ${name}`, code(name)]));
}

const symbols = { helper: place.helper, data: place.data };

/** All of them, linked to the same place. */
export const functions: readonly TestFunction[] = Object.entries(sources).map(([name, text]) => ({
  name,
  code: assemble(text, place.code, symbols),
}));

export const helper = assemble('bti c\n add x5, x5, x0\n ret', place.helper);
