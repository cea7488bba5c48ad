# A boot sector that asks the BIOS for its memory map, an entry after the other (ACPI 6.5, 15.1 "INT 15H, E820H"). It prints
# each as start, size and type on the first serial port, and ends QEMU. Interrupts are off while it prints: at a timer's,
# SeaBIOS writes on that port what it has not yet written of its own text, in the middle of a line.
        .code16
        .text
        .globl  _start
_start: ljmp    $0, $1f
1:      cli
        xor     %ax, %ax
        mov     %ax, %ds
        mov     %ax, %es
        mov     %ax, %ss
        mov     $0x7c00, %sp
        xor     %ebx, %ebx
2:      mov     $0xe820, %eax
        mov     $0x534d4150, %edx       # SMAP
        mov     $20, %ecx
        mov     $0x7e00, %di
        int     $0x15
        cli
        jc      3f
        push    %ebx
        mov     0x7e04, %ebx
        call    word
        mov     0x7e00, %ebx
        call    word
        mov     $' ', %al
        call    char
        mov     0x7e0c, %ebx
        call    word
        mov     0x7e08, %ebx
        call    word
        mov     $' ', %al
        call    char
        mov     0x7e10, %ebx
        call    word
        mov     $'\n', %al
        call    char
        pop     %ebx
        test    %ebx, %ebx
        jnz     2b
3:      mov     $0xf4, %dx
        xor     %eax, %eax
        out     %eax, %dx
        hlt
word:   mov     $8, %cx
4:      rol     $4, %ebx
        mov     %bl, %al
        and     $15, %al
        add     $'0', %al
        cmp     $'9', %al
        jbe     5f
        add     $'a' - '9' - 1, %al
5:      call    char
        loop    4b
        ret
char:   mov     $0x3f8, %dx
        out     %al, %dx
        ret
        .org    510
        .word   0xaa55
