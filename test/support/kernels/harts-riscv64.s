# A kernel in M-mode whose harts all run the same functions at once, under a timer interrupt each, assembled with
#   HARTS   how many harts run, CALLS how often each of them calls `outer(call, hart)`, which calls `inner`
#   PERIOD  ticks of the 10 MHz timer between two interrupts of a hart; 0: none. Each calls `tick(so many, hart)`
#   TICKS   a hart calls on until so many interrupts have come
# When all have called, hart 0 prints a line a hart, "hart H outer N inner N ticks N sum N", and ends with status 0. `sum` is of what `outer`
# gave, 3 * call + hart + 1 each. tp is the hart's number, as Linux, xv6 and others have it.

    .option norelax
    .text
    .globl _start
_start:
    csrr s0, mhartid
    li t0, HARTS
    bgeu s0, t0, park
    mv tp, s0
    la sp, stacks
    addi t0, s0, 1
    slli t0, t0, 12
    add sp, sp, t0
    la s1, counters
    slli t0, s0, 6
    add s1, s1, t0
    # From here on all call at once.
    la t0, ready
    li t1, 1
    amoadd.d zero, t1, (t0)
    li t2, HARTS
0:  ld t1, 0(t0)
    bne t1, t2, 0b
.if PERIOD
    la t0, trap
    csrw mtvec, t0
    call arm
    li t0, 0x80
    csrs mie, t0
    csrsi mstatus, 8
.endif
    li s2, 0
    li s3, 0
    li s4, CALLS
1:  mv a0, s2
    mv a1, s0
    call outer
    add s3, s3, a0
    addi s2, s2, 1
    bltu s2, s4, 1b
    li t1, TICKS
    ld t0, 16(s1)
    bltu t0, t1, 1b
.if PERIOD
    # One interrupt at least, however fast that was.
11: ld t0, 16(s1)
    beqz t0, 11b
.endif
    csrci mstatus, 8
    sd s3, 24(s1)
    fence
    la t0, finished
    li t1, 1
    amoadd.d zero, t1, (t0)
    bnez s0, park
2:  ld t1, 0(t0)
    li t2, HARTS
    bne t1, t2, 2b
    fence

    # Who traces may stop here: nothing that is traced comes after it.
    call drained
    li s2, 0
3:  la a0, l_hart
    call text
    mv a0, s2
    call number
    la s1, counters
    slli t0, s2, 6
    add s1, s1, t0
    la a0, l_outer
    call text
    ld a0, 0(s1)
    call number
    la a0, l_inner
    call text
    ld a0, 8(s1)
    call number
    la a0, l_ticks
    call text
    ld a0, 16(s1)
    call number
    la a0, l_sum
    call text
    ld a0, 24(s1)
    call number
    la a0, l_end
    call text
    addi s2, s2, 1
    li t0, HARTS
    bne s2, t0, 3b
    li t0, 0x100000
    li t1, 0x5555
    sw t1, 0(t0)
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

    .globl drained
    .type drained, @function
drained:
    ret
    .size drained, . - drained

# The next interrupt of this hart: PERIOD from now.
arm:
    li t0, 0x0200bff8
    ld t1, 0(t0)
    li t2, PERIOD
    add t1, t1, t2
    li t0, 0x02004000
    slli t2, tp, 3
    add t0, t0, t2
    sd t1, 0(t0)
    ret

    .balign 4
trap:
    addi sp, sp, -144
    sd ra, 0(sp)
    sd t0, 8(sp)
    sd t1, 16(sp)
    sd t2, 24(sp)
    sd t3, 32(sp)
    sd t4, 40(sp)
    sd t5, 48(sp)
    sd t6, 56(sp)
    sd a0, 64(sp)
    sd a1, 72(sp)
    sd a2, 80(sp)
    sd a3, 88(sp)
    sd a4, 96(sp)
    sd a5, 104(sp)
    sd a6, 112(sp)
    sd a7, 120(sp)
    call arm
    la a0, counters + 16
    slli t0, tp, 6
    add a0, a0, t0
    ld a0, 0(a0)
    mv a1, tp
    call tick
    ld ra, 0(sp)
    ld t0, 8(sp)
    ld t1, 16(sp)
    ld t2, 24(sp)
    ld t3, 32(sp)
    ld t4, 40(sp)
    ld t5, 48(sp)
    ld t6, 56(sp)
    ld a0, 64(sp)
    ld a1, 72(sp)
    ld a2, 80(sp)
    ld a3, 88(sp)
    ld a4, 96(sp)
    ld a5, 104(sp)
    ld a6, 112(sp)
    ld a7, 120(sp)
    addi sp, sp, 144
    mret

    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm

    .macro counts offset
    la t0, counters
    slli t1, a1, 6
    add t0, t0, t1
    ld t1, \offset(t0)
    addi t1, t1, 1
    sd t1, \offset(t0)
    .endm

    function outer
    addi sp, sp, -16
    sd ra, 8(sp)
    counts 0
    call inner
    addi a0, a0, 1
    ld ra, 8(sp)
    addi sp, sp, 16
    ret
outer_end:
    .size outer, . - outer

    function inner
    slli t2, a0, 1
    add a0, a0, t2
    counts 8
    add a0, a0, a1
    ret
inner_end:
    .size inner, . - inner

    function tick
    mv t2, a0
    counts 16
    mv a0, t2
    ret
tick_end:
    .size tick, . - tick

    .section .rodata
l_hart:  .asciz "hart "
l_outer: .asciz " outer "
l_inner: .asciz " inner "
l_ticks: .asciz " ticks "
l_sum:   .asciz " sum "
l_end:   .asciz "\n"

    .data
    .balign 64
counters: .fill 8 * 8, 8, 0
ready:    .quad 0
finished: .quad 0
digits:   .fill 20, 1, 0
digits_end: .byte 0

    .bss
    .balign 16
stacks:   .skip 8 * 4096

    .equ FIRST, 10              # a0
    .equ SECOND, 11
    .include "harts-debug.s"
