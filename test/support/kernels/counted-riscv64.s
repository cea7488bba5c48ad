# `counted NAME, COUNTER`: a function that counts its calls in the eight bytes at COUNTER, and does nothing else.
    .macro counted name, counter
    .globl \name
    .type \name, @function
\name:
    addi sp, sp, -16
    la t0, \counter
    ld t1, 0(t0)
    addi t1, t1, 1
    sd t1, 0(t0)
    addi sp, sp, 16
    ret
    .size \name, . - \name
    .endm
