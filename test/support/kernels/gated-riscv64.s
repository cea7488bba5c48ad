# A supervisor-mode kernel above firmware of its own, which lets it read no counter (mcounteren is 0), assembled with
#   CALLS   how often it calls `work`
#   SPIN    so many turns it waits after each call
#   WORK    turns that `work` itself takes
#   GAP     so many bytes of code lie behind it that nothing runs
#   HARTS   so many harts do that, once all are in the kernel
#   PARKED  the last so many of them stay in the firmware
#   CLOSED  at its end a hart reads the time until that is illegal, at most so many times
# It prints how often `work` was called, counted by the function itself, and how many instructions were illegal, and
# powers off.

    .option norelax
    .option norvc
    .text
    .globl _start
_start:
    csrr tp, mhartid
    csrw mcounteren, zero
    la t0, trap
    csrw mtvec, t0
    li t0, -1                       # all memory, for everybody: R W X, up to its end
    csrw pmpaddr0, t0
    li t0, 0x0f
    csrw pmpcfg0, t0
    li t0, 0x1800
    csrc mstatus, t0
    li t0, HARTS - PARKED
1:  bgeu tp, t0, 1b
    li t0, 0x800                    # MPP = S
    csrs mstatus, t0
    la t0, kernel
    csrw mepc, t0
    mret

# Every trap is an illegal instruction of four bytes: it is counted and skipped. t5 and t6 are the firmware's.
    .balign 4
trap:
    la t5, illegal
    li t6, 1
    amoadd.d zero, t6, (t5)
    csrr t5, mepc
    addi t5, t5, 4
    csrw mepc, t5
    mret

    .globl kernel
    .type kernel, @function
kernel:
    la sp, stack_end
    slli t0, tp, 12
    sub sp, sp, t0
    la s3, arrived
    call all
    call rounds
    li t3, CLOSED
5:  rdtime t0                       # illegal, unless somebody has opened the counter
    la t0, illegal
    ld t0, 0(t0)
    bnez t0, 6f
    addi t3, t3, -1
    bgtz t3, 5b
6:
    la s3, ended
    call all
2:  bnez tp, 2b
    la t0, works
    ld a0, 0(t0)
    call number
    la t0, illegal
    ld a0, 0(t0)
    call number
    li t0, 0x100000
    li t1, 0x5555
    sw t1, 0(t0)
2:  wfi
    j 2b
    .size kernel, . - kernel

# Waits until all harts that run the kernel are here. s3: where they are counted.
all:
    li t0, 1
    amoadd.d zero, t0, (s3)
    li t0, HARTS - PARKED
1:  ld t1, 0(s3)
    bltu t1, t0, 1b
    ret

    .globl rounds
    .type rounds, @function
rounds:
    addi sp, sp, -16
    sd ra, 8(sp)
    li s2, CALLS
1:  mv a0, s2
    call work
    li t1, SPIN
4:  addi t1, t1, -1
    bgtz t1, 4b
    addi s2, s2, -1
    bnez s2, 1b
    ld ra, 8(sp)
    addi sp, sp, 16
    ret
    .size rounds, . - rounds

    .globl work
    .type work, @function
work:
    addi sp, sp, -16
    la t0, works
    li t1, 1
    amoadd.d zero, t1, (t0)
    li t1, WORK
1:  addi t1, t1, -1
    bgtz t1, 1b
    addi sp, sp, 16
    ret
    .size work, . - work

    .include "number-riscv64.s"
    .if GAP
    .skip GAP
    .endif

    .bss
    .balign 16
illegal:
    .skip 8
works:
    .skip 8
arrived:
    .skip 8
ended:
    .skip 8
    .skip 4096 * HARTS
stack_end:
