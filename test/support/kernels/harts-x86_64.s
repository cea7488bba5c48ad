# The same as harts-riscv64.s for x86-64, started by QEMU through its PVH note; the first processor starts the others. A hart's number is that of
# its local APIC, without the gap behind 3 that two sockets of three cores have. All have one descriptor table, no task state and no segment of their own: nothing but the APIC tells them apart.

    .equ APIC, 0xfee00000           # Intel SDM volume 3, "Advanced Programmable Interrupt Controller"
    .equ LOW, 0x8000                # where the others begin, in real mode
    .equ VECTOR, 0x40

    .section .note.pvh, "a", @note
    .long 4, 4, 18
    .asciz "Xen"
    .long _start

    .macro own_number
    mov $1, %eax
    cpuid
    shr $24, %ebx
    cmp $4, %ebx
    cmc
    sbb $0, %ebx
    .endm

    .text
    .code32
    .globl _start
_start:
    mov $pages, %edi
    mov $0x83, %eax                 # 2 MiB, writable
    mov $2048, %ecx
0:  mov %eax, (%edi)
    add $8, %edi
    add $0x200000, %eax
    loop 0b
    movl $pages + 3, level2
    movl $pages + 0x1003, level2 + 8
    movl $pages + 0x2003, level2 + 16
    movl $pages + 0x3003, level2 + 24
    movl $level2 + 3, level3
    mov $low, %esi
    mov $LOW, %edi
    mov $low_end - low, %ecx
    rep movsb
    lgdt gdt_pointer
    ljmp $24, $protected

    .code16
low:
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl LOW + low_pointer - low
    mov %cr0, %eax
    or $1, %al
    mov %eax, %cr0
    ljmpl $24, $protected
low_pointer:
    .word 31
    .long gdt
low_end:

    .code32
protected:
    mov $16, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov %cr4, %eax
    or $0x20, %eax                  # PAE
    mov %eax, %cr4
    mov $level3, %eax
    mov %eax, %cr3
    mov $0xc0000080, %ecx           # EFER
    rdmsr
    or $0x100, %eax                 # LME
    wrmsr
    mov %cr0, %eax
    or $0x80000000, %eax            # PG
    mov %eax, %cr0
    ljmp $8, $long
    .code64
long:
    own_number                      # rbx
    cmp $HARTS, %ebx
    jae park
    mov %ebx, %eax
    shl $12, %eax
    lea stacks + 4096(%rax), %rsp
    mov $APIC, %ebp
    mov %ebx, %r14d
    shl $6, %r14d
    add $counters, %r14             # r14: its counters
    test %ebx, %ebx
    jnz 1f
    mov $0xff, %al
    out %al, $0x21
    out %al, $0xa1
    mov $trap, %eax
    mov %ax, idt + 16 * VECTOR
    movw $8, idt + 16 * VECTOR + 2
    movw $0x8e00, idt + 16 * VECTOR + 4
    shr $16, %eax
    mov %ax, idt + 16 * VECTOR + 6
    movl $0xc4500, 0x300(%rbp)      # INIT to all others
    mov $100000, %ecx
0:  pause
    loop 0b
    movl $0xc4600 + LOW / 4096, 0x300(%rbp)
    # From here on all call at once.
1:  lock incq ready
2:  pause
    cmpq $HARTS, ready
    jne 2b
.if PERIOD
    lidt idt_pointer
    movl $0x1ff, 0xf0(%rbp)         # on
    movl $0x0b, 0x3e0(%rbp)         # 1 GHz, which QEMU's is, by 1
    movl $VECTOR, 0x320(%rbp)
    call arm
    sti
.endif
    xor %r12d, %r12d
    xor %r13d, %r13d
3:  mov %r12, %rdi
    mov %rbx, %rsi
    call outer
    add %rax, %r13
    inc %r12
    cmp $CALLS, %r12
    jb 3b
    cmpq $TICKS, 16(%r14)
    jb 3b
.if PERIOD
31: pause                           # one interrupt at least, however fast that was
    cmpq $0, 16(%r14)
    je 31b
.endif
    cli
    mov %r13, 24(%r14)
    lock incq finished
    test %ebx, %ebx
    jnz park
4:  pause
    cmpq $HARTS, finished
    jne 4b

    # Who traces may stop here: nothing that is traced comes after it.
    call drained
    mov $counters, %r14d
5:  mov $l_hart, %esi
    call text
    mov %ebx, %eax
    call number
    mov $l_outer, %esi
    call text
    mov (%r14), %rax
    call number
    mov $l_inner, %esi
    call text
    mov 8(%r14), %rax
    call number
    mov $l_ticks, %esi
    call text
    mov 16(%r14), %rax
    call number
    mov $l_sum, %esi
    call text
    mov 24(%r14), %rax
    call number
    mov $l_end, %esi
    call text
    add $64, %r14
    inc %ebx
    cmp $HARTS, %ebx
    jne 5b
.if RESETS
    # Counted in RAM that nobody loads anything to.
    mov $0x4000000, %edi
    cmpl $RESETS, (%rdi)
    je 51f
    incl (%rdi)
    lidt no_idt
    int3                            # a triple fault
51:
.endif
    mov $0xf4, %dx
    xor %eax, %eax
    out %al, %dx
park:
    cli
    hlt
    jmp park

    .include "print-x86_64.s"

    .globl drained
    .type drained, @function
drained:
    nopl 0(%rax, %rax)
    ret
    .size drained, . - drained

# The next interrupt of this hart: PERIOD from now.
arm:
    movl $PERIOD * 100, 0x380(%rbp)
    ret

# Whatever is interrupted may have anything in any register.
trap:
    push %rax
    push %rbx
    push %rbp
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    mov $APIC, %ebp
    call arm
    movl $0, 0xb0(%rbp)
    own_number
    mov %rbx, %rsi
    shl $6, %ebx
    mov counters + 16(%rbx), %rdi
    call tick
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rdx
    pop %rcx
    pop %rbp
    pop %rbx
    pop %rax
    iretq

    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm

    .macro counts offset
    mov %rsi, %rcx
    shl $6, %rcx
    incq counters + \offset(%rcx)
    .endm

    function outer
    push %rsi
    counts 0
    call inner
    inc %rax
    pop %rsi
    ret
outer_end:
    .size outer, . - outer

    function inner
    lea (%rdi, %rdi, 2), %rax
    counts 8
    add %rsi, %rax
    ret
inner_end:
    .size inner, . - inner

    function tick
    mov %rdi, %rax
    counts 16
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
    .balign 8
gdt:     .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cf9b000000ffff
gdt_pointer: .word 31
    .long gdt
no_idt:  .word 0
    .quad 0
idt_pointer: .word 16 * (VECTOR + 1) - 1
    .quad idt

    .data
    .balign 64
counters: .fill 8 * 8, 8, 0
ready:    .quad 0
finished: .quad 0

    .bss
    .balign 4096
pages:   .skip 4 * 4096
level2:  .skip 4096
level3:  .skip 4096
stacks:  .skip 8 * 4096
idt:     .skip 16 * (VECTOR + 1)

    .equ FIRST, 5               # rdi
    .equ SECOND, 4              # rsi
    .include "harts-debug.s"
