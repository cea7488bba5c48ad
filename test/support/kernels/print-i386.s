# For 32-bit kernels, on the first serial port: `entry` prints the start, size and type of the map entry at edi and a line's
# end, `word` prints ebx in hexadecimal digits, `char` prints al.
entry:  mov     4(%edi), %ebx
        call    word
        mov     (%edi), %ebx
        call    word
        mov     $' ', %al
        call    char
        mov     12(%edi), %ebx
        call    word
        mov     8(%edi), %ebx
        call    word
        mov     $' ', %al
        call    char
        mov     16(%edi), %ebx
        call    word
        mov     $'\n', %al
        jmp     char
word:   mov     $8, %ecx                # prints ebx
6:      rol     $4, %ebx
        mov     %ebx, %eax
        and     $15, %al
        add     $'0', %al
        cmp     $'9', %al
        jbe     7f
        add     $'a' - '9' - 1, %al
7:      call    char
        loop    6b
        ret
char:   mov     $0x3f8, %edx
        out     %al, %dx
        ret
