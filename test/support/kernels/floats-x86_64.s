# Calls `take` of floats-x86_64.c with 1.5 in xmm0, in turn while the floating-point unit is on, and while CR0.TS or
# CR0.EM says that it is off: an access to xmm0 raises an exception then, and no handler is there. PVH starts it.

    .section .note.pvh, "a", @note
    .long 4, 4, 18
    .asciz "Xen"
    .long _start

    .text
    .code32
    .globl _start
_start:
    mov $pages, %edi
    mov $0x83, %eax                 # 2 MiB, writable
    mov $512, %ecx
0:  mov %eax, (%edi)
    add $8, %edi
    add $0x200000, %eax
    loop 0b
    movl $pages + 3, level3
    movl $level3 + 3, level4
    mov %cr4, %eax
    or $0x220, %eax                 # PAE, OSFXSR
    mov %eax, %cr4
    mov $level4, %eax
    mov %eax, %cr3
    mov $0xc0000080, %ecx           # EFER
    rdmsr
    or $0x100, %eax                 # LME
    wrmsr
    mov %cr0, %eax
    or $0x80000000, %eax            # PG
    mov %eax, %cr0
    lgdt gdt_pointer
    ljmp $8, $started
    .code64
started:
    mov $stack_end, %esp
    mov %cr0, %r13
    and $~0xc, %r13
    mov $0x3ff8000000000000, %rax   # 1.5
    mov %r13, %cr0
    movq %rax, %xmm0
    xor %ebx, %ebx
1:  xor %r12d, %r12d                # on, TS, EM
    call one
    mov $8, %r12d
    call one
    mov $4, %r12d
    call one
    cmp $CALLS, %rbx
    jb 1b
    mov $0xf4, %edx
    xor %eax, %eax
    out %al, %dx
park:
    cli
    hlt
    jmp park

one:
    or %r13, %r12
    mov %r12, %cr0
    inc %rbx
    mov %rbx, %rdi
    call take
    ret

    .section .rodata
    .balign 8
gdt:     .quad 0, 0x00af9b000000ffff
gdt_pointer: .word 15
    .long gdt

    .bss
    .balign 4096
pages:   .skip 4096
level3:  .skip 4096
level4:  .skip 4096
    .skip 4096
stack_end:

    .section .note.GNU-stack, "", @progbits
