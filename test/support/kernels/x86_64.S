# The same for x86-64, started by QEMU through its PVH note. Linked at BASE + 0x100000, loaded at 0x100000. LEVELS: 4 or 5.
        .equ    OFFSET, BASE
        .cfi_sections .debug_frame
        .equ    TABLE, 0x03             # W P
        .equ    CODE, 0x61              # D A P
        .equ    DATA, 0x63              # D A W P, and bit 63

        .section .note.pvh, "a", @note
        .long   4, 4, 18
        .asciz  "Xen"
        .long   _start - OFFSET

        .text
        .code32
        .globl  _start
_start: mov     $(level0 - OFFSET + 256 * 8), %edi
        mov     $(_start - OFFSET), %eax
1:      mov     %eax, %ecx
        or      $CODE, %ecx
        xor     %edx, %edx
        cmp     $(text_end - OFFSET), %eax
        jb      2f
        or      $DATA, %ecx
        mov     $0x80000000, %edx
2:      mov     %ecx, (%edi)
        mov     %edx, 4(%edi)
        add     $8, %edi
        add     $4096, %eax
        cmp     $(image_end - OFFSET), %eax
        jb      1b

        movl    $(level0 - OFFSET + TABLE), level1 - OFFSET
        movl    $(level1 - OFFSET + TABLE), level2 - OFFSET + 510 * 8
        movl    $0xe3, boot - OFFSET    # the first 2 MiB, to run on when paging is turned on
        movl    $(boot - OFFSET + TABLE), level2 - OFFSET
        movl    $(level2 - OFFSET + TABLE), level3 - OFFSET
        movl    $(level2 - OFFSET + TABLE), level3 - OFFSET + 511 * 8
        mov     $(level3 - OFFSET), %esi
        .if LEVELS == 5
        movl    $(level3 - OFFSET + TABLE), level4 - OFFSET
        movl    $(level3 - OFFSET + TABLE), level4 - OFFSET + ((BASE >> 48) & 511) * 8
        mov     $(level4 - OFFSET), %esi
        .endif
        mov     %esi, %ebp
        mov     $(other - OFFSET), %edi
        mov     $1024, %ecx
        rep     movsl

        mov     %cr4, %eax
        or      $0x20, %eax             # PAE
        .if LEVELS == 5
        or      $0x1000, %eax           # LA57
        .endif
        mov     %eax, %cr4
        mov     %ebp, %cr3
        mov     $0xc0000080, %ecx       # EFER
        rdmsr
        or      $0x900, %eax            # NXE, LME
        wrmsr
        mov     %cr0, %eax
        or      $0x80010000, %eax       # PG, WP
        mov     %eax, %cr0
        lgdt    gdt_pointer - OFFSET
        ljmp    $8, $(long - OFFSET)
        .code64
long:   movabs  $high, %rax
        jmp     *%rax
high:   lea     stack(%rip), %rsp
        movq    $0, level2(%rip)
        mov     %ebp, %ebx              # one root
        mov     $(other - OFFSET), %ebp # and the other
        mov     %rbp, %cr3
        .globl  settled
settled:
        mov     $1000, %r12d
3:      mov     %rbp, %cr3
        xchg    %rbx, %rbp
        call    work
        call    outer
        dec     %r12d
        jnz     3b
        mov     counter(%rip), %eax
        call    print
        mov     counter + 8(%rip), %eax
        call    print
        mov     $0xf4, %dx
        xor     %eax, %eax
        out     %al, %dx
5:      jmp     5b

print:                                  # eax in four digits
        mov     $1000, %ecx
        mov     $10, %r8d
4:      xor     %edx, %edx
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
        jnz     4b
        mov     $'\n', %al
        mov     $0x3f8, %dx
        out     %al, %dx
        ret

        .balign 8
        .globl  work
        .type   work, @function
work:   .cfi_startproc
        nopl    0(%rax, %rax)           # 5 bytes
        incq    counter(%rip)
        ret
        .cfi_endproc
        .size   work, . - work

        .globl  outer
        .type   outer, @function
outer:  .cfi_startproc
        push    %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        mov     $1, %edi
        call    inner
        mov     $1, %edi
        call    inner
        pop     %rbx
        .cfi_def_cfa_offset 8
        .cfi_restore rbx
        ret
        .cfi_endproc
        .size   outer, . - outer

        .globl  inner
        .type   inner, @function
inner:  .cfi_startproc
        push    %rbx                    # calls itself edi times
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        incq    counter + 8(%rip)
        test    %edi, %edi
        jz      7f
        dec     %edi
        call    inner
7:      pop     %rbx
        .cfi_def_cfa_offset 8
        .cfi_restore rbx
        ret
        .cfi_endproc
        .size   inner, . - inner
        .balign 8
gdt:    .quad   0, 0x00af9b000000ffff
gdt_pointer:
        .word   15
        .long   gdt - OFFSET
        .balign 4096
text_end:
        .data
        .balign 4096
counter: .quad  0, 0
        .bss
        .balign 4096
level0: .skip   4096
level1: .skip   4096
level2: .skip   4096
level3: .skip   4096
level4: .skip   4096
other:  .skip   4096
boot:   .skip   4096
        .skip   4096
stack:
        .balign 4096
image_end:
