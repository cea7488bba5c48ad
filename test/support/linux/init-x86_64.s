# The same as init-riscv64.s.
        .globl  _start
_start: mov     $20, %r12d
1:      mov     $57, %eax               # fork
        syscall
        test    %eax, %eax
        jnz     2f
        mov     $50, %r13d
        call    ask
        mov     $60, %eax               # exit
        xor     %edi, %edi
        syscall
2:      mov     $61, %eax               # wait4(-1, 0, 0, 0)
        mov     $-1, %rdi
        xor     %esi, %esi
        xor     %edx, %edx
        xor     %r10d, %r10d
        syscall
        dec     %r12d
        jnz     1b
        mov     $1000, %r13d
        call    ask
        mov     $1, %eax                # write
        mov     $1, %edi
        lea     text(%rip), %rsi
        mov     $14, %edx
        syscall
        mov     $169, %eax              # reboot(..., POWER_OFF)
        mov     $0xfee1dead, %edi
        mov     $672274793, %esi
        mov     $0x4321fedc, %edx
        syscall
3:      jmp     3b

ask:    mov     $110, %eax              # getppid
        syscall
        dec     %r13d
        jnz     ask
        ret
text:   .ascii  "init has ended"
