# A kernel in M-mode for QEMU's sifive_u, whose first hart is a cluster of its own. Hart h calls `work` 40 + h times.
# When all HARTS have, hart 1 prints to UART "work N", the calls that the harts have counted, and calls `drained`.

    .option norelax
    .text
    .globl _start
_start:
    csrr s0, mhartid
    la sp, stacks_end
    slli t0, s0, 8
    sub sp, sp, t0
    la s1, calls
    addi s2, s0, 40
1:  mv a0, s0
    call work
    addi s2, s2, -1
    bnez s2, 1b
    la t0, finished
    li t1, 1
    amoadd.d zero, t1, (t0)
    bne s0, t1, park
    li t2, HARTS
2:  ld t1, 0(t0)
    bne t1, t2, 2b
    la a1, text
    ld a0, (s1)
    li t2, 100
    li t3, 10
    divu t0, a0, t2
    addi t0, t0, '0'
    sb t0, 5(a1)
    remu a0, a0, t2
    divu t0, a0, t3
    addi t0, t0, '0'
    sb t0, 6(a1)
    remu a0, a0, t3
    addi a0, a0, '0'
    sb a0, 7(a1)
    li t0, UART
3:  lbu t1, (a1)
    beqz t1, 4f
    sw t1, (t0)
    addi a1, a1, 1
    j 3b
4:  call drained
park:
    wfi
    j park

    .globl work
    .type work, @function
work:
    li t1, 1
    amoadd.d zero, t1, (s1)
    ret
    .size work, . - work

    .globl drained
    .type drained, @function
drained:
    ret
    .size drained, . - drained

    .data
text: .asciz "work 000\n"
    .balign 8
calls: .dword 0
finished: .dword 0
    .bss
    .balign 16
    .zero 256 * HARTS
stacks_end:
