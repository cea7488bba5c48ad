# A kernel in M-mode whose functions return in several ways, assembled without debug info, so that they may have arguments on the stack, with
#   CALLS   how often it calls each
#   RESETS  how often it resets the machine at its end; it counts in RAM that nobody loads anything to
# and linked with ends-plain-riscv64.s, which has debug info. It prints "many=  N deep= N tail= N plain=N total=N" and ends with status 0.

    .option norelax
    .text
    .globl _start
_start:
    la sp, stack_end
    li s2, 0
    li s3, 0
    li s4, CALLS
1:  mv a0, s2
    sd s3, 0(sp)
    call many
    add s3, s3, a0
    andi a0, s2, 7
    call deep
    add s3, s3, a0
    mv a0, s2
    call tail
    add s3, s3, a0
    addi s2, s2, 1
    bne s2, s4, 1b
    # Who traces may stop here: nothing that is traced comes after it.
    call drained
    la s1, counts
    la s0, labels
2:  mv a0, s0
    call text
    ld a0, 0(s1)
    call number
    addi s0, s0, 8
    addi s1, s1, 8
    la t0, counts_end
    bne s1, t0, 2b
    mv a0, s0
    call text
    mv a0, s3
    call number
    la a0, l_end
    call text
    li t0, 0x100000
    li t1, 0x5555
    li t2, 0x84000000
    ld t3, 0(t2)
    li t4, RESETS
    beq t3, t4, 3f
    addi t3, t3, 1
    sd t3, 0(t2)
    li t1, 0x7777
3:  sw t1, 0(t0)
park:
    wfi
    j park

text:
    li t0, 0x10000000
4:  lbu t1, 0(a0)
    beqz t1, 5f
    sb t1, 0(t0)
    addi a0, a0, 1
    j 4b
5:  ret

number:
    la t2, digits_end
    li t1, 10
6:  remu t3, a0, t1
    divu a0, a0, t1
    addi t3, t3, '0'
    addi t2, t2, -1
    sb t3, 0(t2)
    bnez a0, 6b
    mv a0, t2
    j text

    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm
    # Leaves t0 as it was: it may be somebody's.
    .macro counted number
    la t1, counts
    ld t2, 8 * \number(t1)
    addi t2, t2, 1
    sd t2, 8 * \number(t1)
    .endm

    function drained
    nop
    nop
    ret
    .size drained, . - drained

    # Two returns, each a compressed one behind a compressed instruction that restores.
    function many
    addi sp, sp, -32
    sd s0, 16(sp)
    counted 0
    ld s0, 32(sp)
    andi t2, a0, 1
    bnez t2, 7f
    slli a0, a0, 1
    add a0, a0, s0
    ld s0, 16(sp)
    addi sp, sp, 32
    ret
7:  addi a0, a0, 5
    ld s0, 16(sp)
    addi sp, sp, 32
    ret
    .size many, . - many

    # Calls itself; its first return is one of 4 bytes that a branch leads to, and a call stands right before the other.
    function deep
    addi sp, sp, -16
    sd ra, 8(sp)
    counted 1
    beqz a0, 8f
    addi a0, a0, -1
    call deep
    ld ra, 8(sp)
    addi a0, a0, 3
    addi sp, sp, 16
    ret
8:  addi sp, sp, 16
    .option push
    .option norvc
    ret
    .option pop
    .size deep, . - deep

    # Jumps to `plain` at one end.
    function tail
    counted 2
    addi a0, a0, 1
    andi t2, a0, 3
    beqz t2, 9f
    tail plain
9:  addi a0, a0, 7
    slli a0, a0, 1
    ret
    .size tail, . - tail

    .section .rodata
labels:
    .asciz "many=  ", " deep= ", " tail= ", " plain=", " total="
l_end:  .asciz "\n"

    .data
    .globl counts
    .balign 8
counts: .dword 0, 0, 0, 0
counts_end:
digits:   .fill 20, 1, 0
digits_end: .byte 0

    .bss
    .balign 16
    .skip 4096
stack_end:
    .skip 16
