# A kernel in S-mode that calls `work` CALLS times and `last` once, and then ends its machine in the way WAY:
#   0 SiFive's test device, passed    1 the same, failed with status 3    2 SBI's System Reset Extension    3 SBI's legacy shutdown
#   4 semihosting's SYS_EXIT          5 the test device, with a number that comes out of memory

    .option norelax
    .text
    .globl _start
_start:
    la sp, stack_end
    li s0, CALLS
1:  call work
    addi s0, s0, -1
    bnez s0, 1b
    call last
    .if WAY == 0
    li t0, 0x100000
    li t1, 0x5555
    sw t1, 0(t0)
    .elseif WAY == 1
    li t0, 0x100000
    li t1, 0x3333
    li t2, 3 << 16
    or t1, t1, t2
    sw t1, 0(t0)
    .elseif WAY == 2
    li a7, 0x53525354
    li a6, 0
    li a0, 0
    li a1, 0
    ecall
    .elseif WAY == 3
    li a7, 8
    ecall
    .elseif WAY == 4
    li a0, 0x18
    la a1, exit_block
    .balign 16
    .option push
    .option norvc
    slli x0, x0, 0x1f
    ebreak
    srai x0, x0, 7
    .option pop
    .else
    li t0, 0x100000
    la t1, number
    lw t1, 0(t1)
    sw t1, 0(t0)
    .endif
park:
    wfi
    j park

    .type work, @function
work:
    addi a0, a0, 1
    xor a1, a1, a0
    slli a2, a0, 3
    add a3, a1, a2
    ret
    .size work, . - work

    .type last, @function
last:
    addi a0, a0, 1
    xor a1, a1, a0
    slli a2, a0, 3
    add a3, a1, a2
    ret
    .size last, . - last

    .data
    .balign 8
number:     .word 0x5555
    .balign 8
# ADP_Stopped_ApplicationExit, status 0.
exit_block: .dword 0x20026, 0
    .bss
    .balign 16
    .skip 4096
stack_end:
