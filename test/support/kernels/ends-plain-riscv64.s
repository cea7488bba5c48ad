# What ends-riscv64.s jumps to at an end: assembled with debug info, which says that it takes no arguments.
    .text
    .globl plain
    .type plain, @function
plain:
    la t1, counts
    ld t2, 24(t1)
    addi t2, t2, 1
    sd t2, 24(t1)
    slli t2, a0, 2
    add a0, a0, t2
    ret
    .size plain, . - plain
