# A kernel in M-mode that does what code in a target's text may stumble over, assembled with
#   CALLS   how often it calls `work` and `changed`
#   OWN     bytes of a section .rsptrace, with a function `inside` at its begin; 0: none
# It sums up the code of `work` at its begin and again at its end, and replaces the first instruction of `changed` before the first call.
# It prints "calls N code same|other total N" and ends with status 0; untraced, the total is 3 * CALLS and the code the same.

    .option norelax
    .option norvc
    .text
    .globl _start
_start:
    la sp, stack_end
    call checksum
    mv s1, a0
    la t0, changed
    la t1, replacement
    lw t2, 0(t1)
    sw t2, 0(t0)
    fence.i
    li s2, 0
    li s3, 0
    li s4, CALLS
1:  mv a0, s3
    call work
    call changed
    mv s3, a0
    la a0, counter
    call reserves
    addi s2, s2, 1
    bne s2, s4, 1b
    call checksum
    mv s5, a0
    # Who traces may stop here: nothing that is traced comes after it.
    call drained
    la a0, l_calls
    call text
    mv a0, s2
    call number
    la a0, l_same
    beq s1, s5, 2f
    la a0, l_other
2:  call text
    la a0, l_total
    call text
    mv a0, s3
    call number
    la a0, l_end
    call text
    li t0, 0x100000
    li t1, 0x5555
    sw t1, 0(t0)
park:
    wfi
    j park

checksum:
    la t0, work
    la t1, work_end
    li a0, 0
3:  lw t2, 0(t0)
    slli t3, a0, 7
    add a0, a0, t3
    xor a0, a0, t2
    addi t0, t0, 4
    bltu t0, t1, 3b
    ret

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

    function drained
    ret
    .size drained, . - drained

    # Its first instruction writes to the stack.
    function work
    sd s1, -16(sp)
    addi sp, sp, -16
    addi s1, a0, 1
    mv a0, s1
    ld s1, 0(sp)
    addi sp, sp, 16
    ret
work_end:
    .size work, . - work

    function changed
    addi a0, a0, 7
    nop
    nop
    ret
    .size changed, . - changed
    # Memory is reserved between the load and the store.
    function reserves
7:  lr.d t0, (a0)
    addi t0, t0, 1                  # reserved
    nop
    nop
    sc.d t1, t0, (a0)
    bnez t1, 7b
    ret
    .size reserves, . - reserves

replacement:
    addi a0, a0, 2

.if OWN
    .section .rsptrace, "awx", @progbits
    .balign 4096
    function inside
    nop
    nop
    ret
    .size inside, . - inside
    .skip OWN
.endif

    .section .rodata
l_calls: .asciz "calls "
l_same:  .asciz " code same"
l_other: .asciz " code other"
l_total: .asciz " total "
l_end:   .asciz "\n"

    .data
digits:   .fill 20, 1, 0
digits_end: .byte 0
    .balign 8
counter:  .quad 0

    .bss
    .balign 16
    .skip 4096
stack_end:
