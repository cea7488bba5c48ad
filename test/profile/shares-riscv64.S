# Spends 50, 30 and 20 % of its instructions in three functions, on every hart, for ever. Machine mode, no firmware.
    .text
    .globl _start
    .type _start, @function
_start:
    csrr t0, mhartid
    la sp, stacks
    addi t0, t0, 1
    slli t0, t0, 10
    add sp, sp, t0
    call work
1:  wfi
    j 1b
    .size _start, . - _start

    # How much longer each call is.
    .ifndef SCALE
    .equ SCALE, 1
    .endif
    .macro burner name, count
    .globl \name
    .type \name, @function
\name:
    li t0, \count * SCALE
1:  addi t0, t0, -1
    bnez t0, 1b
    ret
    .size \name, . - \name
    .endm

    .text
    burner burn_half, 50000
    burner burn_third, 30000
    burner burn_fifth, 20000

    .globl work
    .type work, @function
work:
    addi sp, sp, -16
    sd ra, 8(sp)
1:  call burn_half
    call burn_third
    call burn_fifth
    j 1b
    .size work, . - work

    .bss
    .balign 16
stacks:
    .zero 16384
