# Begins a kernel of one x86-64 processor, which QEMU starts through its PVH note: maps the first GiB where it is, allows SSE,
# and goes on in 64-bit mode, with a stack, in the code behind its `.include`.

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
    ljmp $8, $long_mode
    .code64
long_mode:
    mov $stack_end, %esp
