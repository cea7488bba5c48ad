# Prints to the first serial port: the text at rsi, the number in rax. Overwrites rax, rcx, rdx and rsi.
text:
    mov $0x3f8, %dx
6:  lodsb
    test %al, %al
    jz 7f
    out %al, %dx
    jmp 6b
7:  ret

number:
    mov $digits_end, %esi
    mov $10, %ecx
8:  xor %edx, %edx
    div %rcx
    add $'0', %dl
    dec %rsi
    mov %dl, (%rsi)
    test %rax, %rax
    jnz 8b
    jmp text

    .data
digits:   .fill 20, 1, 0
digits_end: .byte 0
    .text
