# A position-independent kernel, linked at 0. Firmware puts it elsewhere. It waits for a moment, calls `work`, and prints
# how often that was called by its own count; assembled with
#   CALLS   how often it calls `work`
#   WAIT    ticks that it waits before
    .text
    .globl _start
_start:
    la sp, stack
    rdtime s0
    li t0, WAIT
    add s0, s0, t0
1:  rdtime t0
    bltu t0, s0, 1b
    li s0, CALLS
2:  call work
    addi s0, s0, -1
    bnez s0, 2b
    la a0, works
    ld a0, 0(a0)
    call number
    call bye
    .include "counted-riscv64.s"
    counted work, works
    .include "number-riscv64.s"

    .globl bye
    .type bye, @function
bye:
    li t0, 0x100000                 # QEMU's test device: the machine ends
    li t1, 0x5555
    sw t1, 0(t0)
3:  j 3b
    .size bye, . - bye

    .balign 16
works:
    .quad 0
    .zero 1024
stack:
