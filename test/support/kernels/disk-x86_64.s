# A kernel in the boot sector of a disk, so that only the firmware tells it of its RAM; assembled with
#   CALLS   how often it calls `work`
# It prints that number, counted by the function itself, and ends QEMU through isa-debug-exit.

    .code16
    .text
    .globl _start
_start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movw $0x7c00, %sp
    movw $0x1000, %di               # three page tables at 0x1000, which map the first 2 MiB
    movw $0x3000, %cx
    rep stosb
    movl $0x2003, 0x1000
    movl $0x3003, 0x2000
    movl $0x83, 0x3000
    movl $0x1000, %eax
    movl %eax, %cr3
    movl $0x20, %eax                # PAE
    movl %eax, %cr4
    movl $0xc0000080, %ecx          # EFER: LME, NXE
    movl $0x900, %eax
    xorl %edx, %edx
    wrmsr
    movl $0x80000001, %eax          # PG, PE
    movl %eax, %cr0
    lgdtw gdt_place
    ljmpl $8, $kernel

    .balign 8
gdt:
    .quad 0
    .quad 0x00209a0000000000        # 64-bit code
gdt_place:
    .word 15
    .long gdt

    .code64
    .globl kernel
    .type kernel, @function
kernel:
    movl $CALLS, %ebx
1:  movl %ebx, %edi
    call work
    decl %ebx
    jnz 1b
    movl works, %eax
    movl $10000, %ecx
    movl $10, %esi
2:  xorl %edx, %edx                 # five digits
    divl %ecx
    movl %edx, %edi
    addl $'0', %eax
    movw $0x3f8, %dx
    outb %al, %dx
    xorl %edx, %edx
    movl %ecx, %eax
    divl %esi
    movl %eax, %ecx
    movl %edi, %eax
    testl %ecx, %ecx
    jnz 2b
    movb $10, %al
    movw $0x3f8, %dx
    outb %al, %dx
    call bye
    .size kernel, . - kernel

    .globl bye
    .type bye, @function
bye:
    movw $0xf4, %dx
    xorl %eax, %eax
    outl %eax, %dx
3:  hlt
    jmp 3b
    .size bye, . - bye

    .globl work
    .type work, @function
work:
    subq $16, %rsp
    incl works
    movl %edi, 8(%rsp)
    addq $16, %rsp
    ret
    .size work, . - work

    .balign 4
works:
    .long 0
    .org 510
    .word 0xaa55
