# The smallest kernel that boots as Linux does (Documentation/arch/x86/boot.rst): its setup asks the firmware for the memory map,
# its protected-mode part prints what boot_params say: each e820 entry as start, size and type, then the RAM disk, and ends QEMU.
# boot_params is where the setup was loaded: the header is in its place there.
        .code16
        .text
        .globl  _start
_start:
        .org    0x1f1
        .byte   7                       # sectors of setup behind the first
        .org    0x1fe
        .word   0xaa55
        jmp     1f
        .ascii  "HdrS"
        .word   0x0206
        .org    0x211
        .byte   1                       # LOADED_HIGH
        .org    0x214
        .long   0x100000
        .org    0x22c
        .long   0x7fffffff              # initrd_addr_max
        .org    0x238
        .long   255                     # cmdline_size
        .org    0x260
1:      .byte   0xe9                    # jmp setup
        .word   setup - . - 2
        .org    0x2d0                   # the e820 table
        .org    0xcd0
setup:  cli
        mov     %ds, %ax
        mov     %ax, %es
        xor     %ebx, %ebx
        mov     $0x2d0, %di
2:      mov     $0xe820, %eax
        mov     $0x534d4150, %edx       # SMAP
        mov     $20, %ecx
        int     $0x15
        jc      3f
        add     $20, %di
        incb    0x1e8
        test    %ebx, %ebx
        jnz     2b
3:      cli
        xor     %esi, %esi
        mov     %ds, %si
        shl     $4, %esi
        lea     gdt(%esi), %eax
        mov     %eax, gdt_pointer + 2
        lgdtl   gdt_pointer
        mov     %cr0, %eax
        or      $1, %al
        mov     %eax, %cr0
        ljmpl   $0x10, $0x100000
        .balign 8
gdt:    .quad   0, 0, 0x00cf9b000000ffff, 0x00cf93000000ffff
gdt_pointer:
        .word   31
        .long   0

        .org    8 * 512
        .code32                         # at 0x100000 from here on
        mov     $0x18, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     $0x90000, %esp
        movzbl  0x1e8(%esi), %ecx
        lea     0x2d0(%esi), %edi
4:      push    %ecx
        call    entry
        add     $20, %edi
        pop     %ecx
        loop    4b
        mov     0x218(%esi), %ebx
        call    word
        mov     $'+', %al
        call    char
        mov     0x21c(%esi), %ebx
        call    word
        mov     $'\n', %al
        call    char
        mov     $0xf4, %edx
        xor     %eax, %eax
        out     %al, %dx
5:      jmp     5b

        .include "print-i386.s"
        .balign 512
