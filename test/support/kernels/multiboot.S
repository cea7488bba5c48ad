# The smallest Multiboot kernel (Multiboot Specification 0.6.96). It prints its memory map, each entry as start, size and type,
# then its first module, and the KiB of RAM from 1 MiB on, and ends QEMU.
        .section .multiboot, "a"
        .long   0x1badb002, 2, -0x1badb004
        .code32
        .text
        .globl  _start
_start: mov     $0x90000, %esp
        mov     %ebx, %ebp
        mov     0x30(%ebp), %edi
        mov     0x2c(%ebp), %esi
        add     %edi, %esi
1:      add     $4, %edi
        call    entry
        add     -4(%edi), %edi          # the size of what follows it
        cmp     %esi, %edi
        jb      1b
        xor     %ebx, %ebx
        xor     %edi, %edi
        cmpl    $0, 0x14(%ebp)
        je      2f
        mov     0x18(%ebp), %eax
        mov     (%eax), %ebx
        mov     4(%eax), %edi
        sub     %ebx, %edi
2:      call    word
        mov     $'+', %al
        call    char
        mov     %edi, %ebx
        call    word
        mov     $'\n', %al
        call    char
        mov     $'u', %al
        call    char
        mov     8(%ebp), %ebx
        call    word
        mov     $'\n', %al
        call    char
        mov     $0xf4, %edx
        xor     %eax, %eax
        out     %al, %dx
3:      jmp     3b
        .include "print-i386.s"
