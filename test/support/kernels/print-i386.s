# For 32-bit kernels: `word` prints ebx in hexadecimal digits on the first serial port, `char` prints al.
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
