# The same for x86-64, started by QEMU through its PVH note: the first processor turns to a table of its own, `shared` runs
# before. The second one begins with the first table, and stays with it. Also assembled with
#   EARLY   whether it is started before the first processor turns to its own table, and waits

    .equ LOW, 0x8000                # where the second processor begins, in real mode

    .section .note.pvh, "a", @note
    .long 4, 4, 18
    .asciz "Xen"
    .long _start

    .section .boot, "ax"
    .code32
    .globl _start
_start:
    movl $(boot_level2 + 3), boot_level3
    movl $(boot_level2 + 3), boot_level3 + 511 * 8
    movl $(boot_level1 + 3), boot_level2
    movl $(boot_level1 + 3), boot_level2 + 510 * 8
    movl $(apic_level1 + 3), boot_level2 + 3 * 8
    movl $0xe3, boot_level1         # 4 MiB
    movl $0x2000e3, boot_level1 + 8
    movl $0xfee000fb, apic_level1 + 503 * 8
    mov $low, %esi
    mov $LOW, %edi
    mov $low_end - low, %ecx
    rep movsb
    mov $boot_stack, %esp
    mov $first_at, %ebx
    jmp enter

    .code16
low:
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl LOW + low_pointer - low
    mov %cr0, %eax
    or $1, %al
    mov %eax, %cr0
    ljmpl $16, $LOW + low32 - low
    .code32
low32:                              # as a kernel's code that nobody has a symbol of
    mov $24, %eax
    mov %eax, %ds
    mov %eax, %ss
    mov $second_stack, %esp
    mov $second_at, %ebx
    mov $LOW + low_enter - low, %eax
    jmp *%eax
low_pointer:
    .word 31
    .long gdt
low_enter:
    .macro long_mode
    mov %cr4, %eax
    or $0x20, %eax                  # PAE
    mov %eax, %cr4
    mov $boot_level3, %eax
    mov %eax, %cr3
    mov $0xc0000080, %ecx           # EFER
    rdmsr
    or $0x900, %eax                 # NXE, LME
    wrmsr
    mov %cr0, %eax
    or $0x80010000, %eax            # PG, WP
    mov %eax, %cr0
    ljmp $8, $long
    .endm
    long_mode
low_end:

enter:
    lgdt gdt_pointer
    long_mode
    .code64
long:
    jmp *(%rbx)
    .balign 8
first_at: .quad first
second_at: .quad second
gdt: .quad 0, 0x00af9b000000ffff, 0x00cf9b000000ffff, 0x00cf93000000ffff
gdt_pointer:
    .word 31
    .long gdt
    .balign 4096
boot_level1: .skip 4096
boot_level2: .skip 4096
boot_level3: .skip 4096
apic_level1: .skip 4096
    .skip 4096
boot_stack:
    .skip 4096
second_stack:

    .text
first:
    lea stack(%rip), %rsp
    mov $SEEN, %r12d
1:  call shared
    dec %r12d
    jnz 1b
    .macro start_second
    mov $0xffffff80fee00000, %rbp   # its APIC
    movl $0xc4500, 0x300(%rbp)      # INIT to all others
    mov $100000, %ecx
2:  pause
    loop 2b
    movl $0xc4600 + LOW / 4096, 0x300(%rbp)
3:  pause
    cmpq $0, begun(%rip)
    je 3b
    .endm
    .if EARLY
    start_second
    .endif
    call paging
    call works_of_one
    .ifeq EARLY
    start_second
    .endif
    incq goes(%rip)
3:  pause
    cmpq $0, done(%rip)
    je 3b
    mov shareds(%rip), %eax
    call print
    mov works(%rip), %eax
    call print
    mov $0xf4, %dx
    xor %eax, %eax
    out %al, %dx
4:  jmp 4b

second:
    incq begun(%rip)
8:  pause
    cmpq $0, goes(%rip)
    je 8b
    call works_of_one
    incq done(%rip)
5:  hlt
    jmp 5b

works_of_one:
    mov $CALLS, %r12d
6:  call work
    dec %r12d
    jnz 6b
    ret

    .globl paging
    .type paging, @function
paging:                             # the same but for what is loaded low
    push %rbx
    lea level1(%rip), %rax
    lea level2(%rip), %rcx
    lea level3(%rip), %rdx
    movabs $BASE, %rbx
    movq $0xe3, (%rax)
    movq $0x2000e3, 8(%rax)
    sub %rbx, %rax
    or $3, %rax
    mov %rax, 510 * 8(%rcx)
    movq $apic_level1 + 3, 3 * 8(%rcx)
    sub %rbx, %rcx
    or $3, %rcx
    mov %rcx, 511 * 8(%rdx)
    sub %rbx, %rdx
    mov %rdx, %cr3
    pop %rbx
    ret
    .size paging, . - paging

    .irp name, shared, work
    .globl \name
    .type \name, @function
\name:
    nopl 0(%rax, %rax)
    incq \name\()s(%rip)
    ret
    .size \name, . - \name
    .endr

print:                              # eax in five digits
    mov $10000, %ecx
    mov $10, %r8d
7:  xor %edx, %edx
    div %ecx
    mov %edx, %r9d
    add $'0', %eax
    mov $0x3f8, %dx
    out %al, %dx
    mov %ecx, %eax
    xor %edx, %edx
    div %r8d
    mov %eax, %ecx
    mov %r9d, %eax
    test %ecx, %ecx
    jnz 7b
    mov $'\n', %al
    mov $0x3f8, %dx
    out %al, %dx
    ret

    .bss
    .balign 4096
level1: .skip 4096
level2: .skip 4096
level3: .skip 4096
shareds: .quad 0
works:  .quad 0
begun:  .quad 0
goes:   .quad 0
done:   .quad 0
    .skip 4096
stack:
