# Functions that have something at stake wherever they are patched inside: flags, registers that nobody else sets, the red zone, the stack.
# They read rdi, rsi, rdx and this file's data.
        .intel_syntax noprefix
        .text
        .globl  carries, every_register, below_stack, pushes, backwards, wide, either, counts, passive

        # The carry and the other flags live from each instruction to the next.
carries: add    rdi, rsi
        lea     r8, [rdx + 8 * rdi]
        adc     rdx, rdi
        mov     r9, rdx
        sbb     rax, rsi
        bswap   r9
        setp    cl
        rcl     rax, 1
        movzx   ecx, cl
        adc     rax, rcx
        ret

every_register: xchg rax, rbx
        lea     rcx, [rax + rdx]
        xchg    rbx, r8
        xor     r9, r10
        lea     r11, [r9 + r11]
        xchg    r8, rbx
        xchg    rbx, rax
        add     r10, [rip + value]
        xor     r11, r10
        ret

below_stack: mov [rsp - 8], rdi
        mov     [rsp - 128], rsi
        mov     [rsp - 64], rdx
        mov     rax, [rsp - 8]
        xor     rax, [rsp - 128]
        add     rax, [rsp - 64]
        ret

        # What the base of the frame is depends on the place.
pushes: push    rbx
        mov     rbx, rdi
        push    rsi
        sub     rsp, 40
        mov     [rsp + 8], rdx
        lea     rax, [rbx + rsi]
        xor     rax, [rsp + 8]
        add     rsp, 40
        pop     rcx
        pop     rbx
        ret

backwards: std
        lea     rax, [rdi + 1]
        xor     rax, rsi
        lea     rax, [rax + rdx]
        cld
        ret

wide:   movq    xmm0, rdi
        paddq   xmm1, xmm0
        pxor    xmm2, xmm1
        movq    rax, xmm1
        mov     [rip + stored], rax
        ret

        # Branches leave windows and lead to their starts.
either: cmp     edi, esi
        lea     rax, [rdx + 1]
        jg      1f
        lea     rax, [rdi + 2]
        adc     rax, rdx
        mov     rcx, rax
1:      lea     rax, [rax + rdi]
        setl    dl
        movzx   edx, dl
        ret

counts: mov     ecx, edi
        and     ecx, 7
        inc     ecx
        xor     eax, eax
1:      lea     rax, [rax + rcx]
        adc     rax, rsi
        dec     ecx
        jnz     1b
        add     rax, rdx
        ret

        # What interrupts call.
passive: mov    rax, rdi
        ret

        .data
        .globl  value, stored
value:  .quad   0x1122334455667788
stored: .quad   0, 0
