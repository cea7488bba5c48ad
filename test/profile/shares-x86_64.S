# The same on x86_64, one processor: QEMU's PVH entry is 32-bit code without paging, which maps 1 GiB and goes to long mode.
    .section .note.pvh, "a", @note
    .long 4, 4, 18
    .asciz "Xen"
    .long _start

    .text
    .code32
    .globl _start
    .type _start, @function
_start:
    movl $pdpt + 3, pml4
    movl $pd + 3, pdpt
    movl $pd, %edi
    movl $0x83, %eax
    movl $512, %ecx
1:  movl %eax, (%edi)
    addl $0x200000, %eax
    addl $8, %edi
    loop 1b
    movl $pml4, %eax
    movl %eax, %cr3
    movl $0x20, %eax
    movl %eax, %cr4
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80000001, %eax
    movl %eax, %cr0
    lgdt gdtr
    ljmp $8, $long
    .size _start, . - _start
    .code64
    .globl long
    .type long, @function
long:
    movw $16, %ax
    movw %ax, %ss
    movw %ax, %ds
    movq $stack, %rsp
    call work
1:  hlt
    jmp 1b
    .size long, . - long

    # How much longer each call is.
    .ifndef SCALE
    .equ SCALE, 1
    .endif
    .macro burner name, count
    .globl \name
    .type \name, @function
\name:
    movl $\count * SCALE, %ecx
1:  decl %ecx
    jnz 1b
    ret
    .size \name, . - \name
    .endm

    burner burn_half, 50000
    burner burn_third, 30000
    burner burn_fifth, 20000

    .globl work
    .type work, @function
work:
    call burn_half
    call burn_third
    call burn_fifth
    jmp work
    .size work, . - work

    .balign 8
gdt:
    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff
gdtr:
    .word 23
    .long gdt, 0

    .bss
    .balign 4096
pml4: .zero 4096
pdpt: .zero 4096
pd:   .zero 4096
    .zero 4096
stack:
