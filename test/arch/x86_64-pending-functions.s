# Functions that carry out scripts, in which traced functions are called and tasks take turns. A script is bytes:
#
#     0: returns    1, 2 or 3, and a number: calls that function with it    4: lets claims in    8 + N: goes on with task N, of 0 to 2
#     15: goes on with the task that went on with this one
#
# What a task has besides its stack is in rbx (what the calls in it have told), rbp and r12 (where it is in its script).
        .intel_syntax noprefix
        .text
        .globl  play, disturb, act1, act2, act3, perform

        # From interrupts, as the host calls them: the script is the third argument.
disturb: mov    rdi, rdx
        # (script) -> what its calls have told.
play:   push    rbx
        push    rbp
        push    r12
        mov     r12, rdi
        xor     ebx, ebx
        call    perform
        mov     rax, rbx
        pop     r12
        pop     rbp
        pop     rbx
        ret

perform: movzx  eax, byte ptr [r12]
        inc     r12
        cmp     eax, 4
        je      2f
        ja      3f
        test    eax, eax
        je      4f
        movzx   edi, byte ptr [r12]
        inc     r12
        sub     rsp, 8
        call    [acts + 8 * rax - 8]
        add     rsp, 8
        imul    rbx, rbx, 31
        add     rbx, rax
        jmp     perform
2:      mov     rax, [rip + opens]
        mov     rcx, [rip + opens + 8]
        mov     [rax], rcx
        jmp     perform
3:      lea     rcx, [rax - 8]
        cmp     ecx, 7
        cmove   rcx, [rip + before]
        push    rbx
        push    rbp
        push    r12
        mov     rdx, [rip + task]
        mov     [tasks + 8 * rdx], rsp
        mov     [rip + before], rdx
        mov     [rip + task], rcx
        mov     rsp, [tasks + 8 * rcx]
        pop     r12
        pop     rbp
        pop     rbx
        jmp     perform
4:      ret

        .macro act name
\name:  push    rbp
        lea     rbp, [rdi + 2 * rdi + 1]
        call    perform
        mov     rax, rbp
        pop     rbp
        ret
        .endm
        act     act1
        act     act2
        act     act3

        .data
        .globl  tasks, task, opens
acts:   .quad   act1, act2, act3
tasks:  .quad   0, 0, 0
task:   .quad   0
before: .quad   0
        # Where what is written when claims are let in.
opens:  .quad   0, 0
