# Functions whose starts have something that a trampoline must carry out elsewhere. They read rdi, rsi, rdx and this file's data.
        .intel_syntax noprefix
        .text
        .globl  plain, rip_load, rip_store, short_branch, near_branch, back_branch, short_jump, near_jump, ends, push_call, wide_call
        .globl  pointer_call, endbr, nops, frames, recursive, aligned, red_zone, direction, own_address, callee
        .globl  mixed, again, passive, tail_to_plain

plain:  lea     rax, [rdi + rsi]
        add     rax, rdx
        ret

        # What the harness calls in the middle of others.
passive: mov    rax, rdi
        xor     rax, rdx
        ret

rip_load: mov   rax, [rip + value]
        add     rax, rdi
        ret

rip_store: mov  dword ptr [rip + stored], 0x12345678
        xadd    [rip + stored + 8], rdi
        mov     rax, rdi
        ret

short_branch: test rdi, rdi
        js      1f
        mov     eax, 1
        ret
1:      mov     eax, 2
        ret

near_branch: cmp edi, esi
        jg      far_away
        mov     eax, 3
        ret

back_away: mov  eax, 5
        ret
back_branch: cmp edi, esi
        jb      back_away
        mov     eax, 6
        ret

short_jump: nop
        jmp     1f
        int3
        int3
1:      lea     rax, [rdi + 1]
        ret

near_jump: .byte 0xe9
        .long   far_away - . - 4

tail_to_plain: add rdi, 1
        jmp     plain

ends:   ret
        nop     dword ptr [rax]
        nop

push_call: push rax
        call    callee
        pop     rcx
        ret

        # As a linker relaxes `call [rip + x]`.
wide_call: push rax
        .byte   0x67, 0xe8
        .long   callee - . - 4
        pop     rcx
        ret

pointer_call: push rbx
        call    [rip + pointer]
        pop     rbx
        ret

endbr:  endbr64
        push    rbp
        mov     rbp, rsp
        lea     rax, [rdi + 8 * rsi - 0x77]
        pop     rbp
        ret

nops:   nop     dword ptr [rax + rax]
        mov     rax, rsi
        ret

frames: push    rbp
        mov     rbp, rsp
        sub     rsp, 0x40
        mov     [rbp - 8], rdi
        mov     [rbp - 0x40], rsi
        mov     rax, [rbp - 8]
        sub     rax, [rbp - 0x40]
        leave
        ret

        # Calls itself edi mod 8 times, and counts.
recursive: push rbx
        mov     rbx, rdi
        and     ebx, 7
        je      1f
        lea     rdi, [rbx - 1]
        call    recursive
        lea     rax, [rax + rbx]
        pop     rbx
        ret
1:      mov     rax, rsi
        pop     rbx
        ret

        # Faults where the stack is not aligned as at a call.
aligned: sub    rsp, 24
        movaps  [rsp], xmm0
        movq    rax, xmm1
        paddq   xmm2, [rsp]
        add     rsp, 24
        ret

red_zone: mov   [rsp - 8], rdi
        mov     [rsp - 128], rsi
        mov     rax, [rsp - 8]
        xor     rax, [rsp - 128]
        ret

direction: pushfq
        pop     rax
        and     eax, 0x400
        ret

        # Tells the return address that the callee saw, less its own address.
own_address: sub rsp, 8
        call    seen_return
        lea     rcx, [rip + own_address]
        sub     rax, rcx
        add     rsp, 8
        ret
seen_return: mov rax, [rsp]
        ret

callee: lea     rax, [rdx + 3]
        mov     [rip + stored], rdx
        ret

        # (thread, number, mixed) -> mixed ^ 3 * number; with values in registers that callers need not save.
mixed:  push    rbx
        mov     rbx, rdi
        lea     rax, [rsi + 2 * rsi]
        xor     rax, rdx
        pop     rbx
        ret
again:  lea     rax, [rsi + 2 * rsi]
        xor     rax, rdx
        ret

far_away: mov   eax, 4
        ret

        .data
        .globl  value, pointer, stored, words
value:  .quad   0x1122334455667788
pointer: .quad  callee
stored: .quad   0, 0x55, 0, 0
        .balign 64
words:  .quad   0x0101010101010101, 0x8182838485868788, 0xfedcba9876543210, 0x00000000ffffffff
        .quad   1, 2, 3, 4, 5, 6, 7, 8
