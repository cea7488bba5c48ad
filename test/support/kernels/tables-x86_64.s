# The same for x86-64, started by QEMU through its PVH note: `early` runs in long mode where it is loaded, `middle` high with the same
# table, `work` with the last one.
        .section .note.pvh, "a", @note
        .long   4, 4, 18
        .asciz  "Xen"
        .long   _start

        .section .boot, "ax"
        .code32
        .globl  _start
_start: movl    $(boot_level2 + 3), boot_level3
        movl    $(boot_level2 + 3), boot_level3 + 511 * 8
        movl    $(boot_level1 + 3), boot_level2
        movl    $(boot_level1 + 3), boot_level2 + 510 * 8
        movl    $0xe3, boot_level1      # 4 MiB
        movl    $0x2000e3, boot_level1 + 8
        mov     %cr4, %eax
        or      $0x20, %eax             # PAE
        mov     %eax, %cr4
        mov     $boot_level3, %eax
        mov     %eax, %cr3
        mov     $0xc0000080, %ecx       # EFER
        rdmsr
        or      $0x900, %eax            # NXE, LME
        wrmsr
        mov     %cr0, %eax
        or      $0x80010000, %eax       # PG, WP
        mov     %eax, %cr0
        lgdt    gdt_pointer
        ljmp    $8, $long
        .code64
long:   mov     $boot_stack, %esp
        mov     $EARLY, %r12d
1:      call    early
        dec     %r12d
        jnz     1b
        mov     earlies(%rip), %r13d
        movabs  $high, %rax
        jmp     *%rax
        .globl  early
        .type   early, @function
early:  nopl    0(%rax, %rax)           # 5 bytes
        incq    earlies(%rip)
        ret
        .size   early, . - early
        .balign 8
gdt:    .quad   0, 0x00af9b000000ffff
gdt_pointer:
        .word   15
        .long   gdt
earlies: .quad  0
        .balign 4096
boot_level1: .skip 4096
boot_level2: .skip 4096
boot_level3: .skip 4096
        .skip   4096
boot_stack:

        .text
high:   lea     stack(%rip), %rsp
        mov     $MIDDLE, %r12d
2:      call    middle
        dec     %r12d
        jnz     2b
        call    settle
        mov     $WORK, %r12d
3:      call    work
        dec     %r12d
        jnz     3b
        mov     %r13d, %eax
        call    print
        mov     middles(%rip), %eax
        call    print
        mov     works(%rip), %eax
        call    print
        mov     $0xf4, %dx
        xor     %eax, %eax
        out     %al, %dx
4:      jmp     4b

        .globl  paging
        .type   paging, @function
paging: push    %rbx
        lea     level1(%rip), %rax
        lea     level2(%rip), %rcx
        lea     level3(%rip), %rdx
        movabs  $BASE, %rbx
        movq    $0xe3, (%rax)
        movq    $0x2000e3, 8(%rax)
        sub     %rbx, %rax
        or      $3, %rax
        mov     %rax, 510 * 8(%rcx)
        sub     %rbx, %rcx
        or      $3, %rcx
        mov     %rcx, 511 * 8(%rdx)
        sub     %rbx, %rdx
        mov     %rdx, %cr3
        pop     %rbx
        ret
        .size   paging, . - paging

        .globl  settle                  # is open while the table changes
        .type   settle, @function
settle: sub     $24, %rsp
        nop
        call    paging
        add     $24, %rsp
        ret
        .size   settle, . - settle

        .globl  middle
        .type   middle, @function
middle: nopl    0(%rax, %rax)
        incq    middles(%rip)
        ret
        .size   middle, . - middle

        .globl  work
        .type   work, @function
work:   nopl    0(%rax, %rax)
        incq    works(%rip)
        ret
        .size   work, . - work

print:                                  # eax in five digits
        mov     $10000, %ecx
        mov     $10, %r8d
5:      xor     %edx, %edx
        div     %ecx
        mov     %edx, %r9d
        add     $'0', %eax
        mov     $0x3f8, %dx
        out     %al, %dx
        mov     %ecx, %eax
        xor     %edx, %edx
        div     %r8d
        mov     %eax, %ecx
        mov     %r9d, %eax
        test    %ecx, %ecx
        jnz     5b
        mov     $'\n', %al
        mov     $0x3f8, %dx
        out     %al, %dx
        ret

        .bss
        .balign 4096
level1: .skip   4096
level2: .skip   4096
level3: .skip   4096
middles: .quad  0
works:  .quad   0
        .skip   4096
stack:
