# The same as brief-riscv64.s for x86-64, started by QEMU through its PVH note: WAIT is in ticks of the TSC.

    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm
    .macro now to
    rdtsc
    shl $32, %rdx
    lea (%rax, %rdx), \to
    .endm

    .include "long-mode-x86_64.s"
    # Where -icount counts, a stop may last until the next timer goes off: the one that the firmware left on (55 ms) does so once more.
    mov $0x30, %al
    out %al, $0x43
    mov $1, %al
    out %al, $0x40
    out %al, $0x40
    now %rbx
    add $64000000, %rbx
0:  now %rax
    cmp %rbx, %rax
    jb 0b
    xor %r12d, %r12d                # calls of `brief`
    xor %r13d, %r13d                # and of `long`
    call work
park:
    cli
    hlt
    jmp park

    function work
    push %rbx
    mov $CALLS, %ebx
1:  call brief
    call quick
    call outer
    dec %ebx
    jnz 1b
    call around
    call tail
    pop %rbx
    ret
    .size work, . - work

    function tail
    push %rbx
    mov %rsp, %rax
    now %rbx
    add $WAIT, %rbx
2:  call brief
    now %rax
    cmp %rbx, %rax
    jb 2b
    call last
    pop %rbx
    ret
    .size tail, . - tail

    function brief
    inc %r12
    nopl 0(%rax, %rax)
    ret
    .size brief, . - brief

    function long
    push %rbx
    inc %r13
    nop
    now %rbx
    add $WAIT, %rbx
3:  now %rax
    cmp %rbx, %rax
    jb 3b
    pop %rbx
    ret
    .size long, . - long

    function quick
    push %rbx
    mov %rsp, %rbx
    nop
    call brief
    call brief
    pop %rbx
    ret
    .size quick, . - quick

    function outer
    push %rbx
    mov %rsp, %rbx
    nop
    call brief
    call long
    call brief
    pop %rbx
    ret
    .size outer, . - outer

    function around
    push %rbx
    mov %rsp, %rbx
    nop
    call unsized
    pop %rbx
    ret
    .size around, . - around

    # Of no known size: who traces it stops here.
    function unsized
    push %rbx
    now %rbx
    add $WAIT, %rbx
4:  now %rax
    cmp %rbx, %rax
    jb 4b
    pop %rbx
    ret

    function last
    push %rbx
    mov %rsp, %rbx
    nop
    mov $l_brief, %esi
    call text
    mov %r12, %rax
    call number
    mov $l_long, %esi
    call text
    mov %r13, %rax
    call number
    mov $l_end, %esi
    call text
    call finish
    pop %rbx
    ret
    .size last, . - last

    function finish
    mov $0xf4, %edx
    xor %eax, %eax
    out %al, %dx
    jmp park
    .size finish, . - finish

    .include "print-x86_64.s"

.if OWN
    .section .rsptrace, "awx", @progbits
    .balign 4096
    .skip OWN
.endif

    .section .rodata
l_brief: .asciz "brief "
l_long:  .asciz " long "
l_end:   .asciz "\n"
