# A kernel in M-mode whose functions last as long as they say, assembled with
#   CALLS   how often `work` calls `brief`, `quick` and `outer`
#   WAIT    ticks of the 10 MHz timer that `long` lasts
#   OWN     bytes of a section .rsptrace; 0: none
# `quick` calls `brief` twice; `outer` calls `brief`, `long` and `brief`; `around`, with a breakpoint's function in it, is called once. `tail`
# calls `brief` as long, and then `last`, which never comes back: it prints "brief N long N", from counters of their own, calls `finish` and ends with status 0.

    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm
    .macro wraps name
    function \name
    addi sp, sp, -16
    sd ra, 8(sp)
    .endm
    .macro ends name
    ld ra, 8(sp)
    addi sp, sp, 16
    ret
    .size \name, . - \name
    .endm

    .option norelax
    .option norvc
    .text
    .globl _start
_start:
    la sp, stack_end
    li s1, 0
    li s2, 0
    call work
park:
    wfi
    j park

    wraps work
    li s4, CALLS
1:  call brief
    call quick
    call outer
    addi s4, s4, -1
    bnez s4, 1b
    call around
    call tail
    ends work

    wraps tail
    rdtime s5
    li t0, WAIT
    add s5, s5, t0
2:  call brief
    rdtime t0
    bltu t0, s5, 2b
    call last
    ends tail

    function brief
    addi s1, s1, 1
    nop
    nop
    ret
    .size brief, . - brief

    function long
    rdtime t1
    li t0, WAIT
    add t0, t0, t1
    addi s2, s2, 1
3:  rdtime t1
    bltu t1, t0, 3b
    ret
    .size long, . - long

    wraps quick
    call brief
    call brief
    ends quick

    wraps outer
    call brief
    call long
    call brief
    ends outer

    wraps around
    call unsized
    ends around

    # Of no known size: who traces it stops here.
    function unsized
    rdtime t1
    li t0, WAIT
    add t0, t0, t1
4:  rdtime t1
    bltu t1, t0, 4b
    ret

    wraps last
    la a0, l_brief
    call text
    mv a0, s1
    call number
    la a0, l_long
    call text
    mv a0, s2
    call number
    la a0, l_end
    call text
    call finish
    ends last

    function finish
    li t0, 0x100000
    li t1, 0x5555
    nop
    sw t1, 0(t0)
    j park
    .size finish, . - finish

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

.if OWN
    .section .rsptrace, "awx", @progbits
    .balign 4096
    .skip OWN
.endif

    .section .rodata
l_brief: .asciz "brief "
l_long:  .asciz " long "
l_end:   .asciz "\n"

    .data
digits:   .fill 20, 1, 0
digits_end: .byte 0

    .bss
    .balign 16
    .skip 4096
stack_end:
