# Calls `take` of floats-x86_64.c with 1.5 in xmm0, in turn while the floating-point unit is on, and while CR0.TS or
# CR0.EM says that it is off: an access to xmm0 raises an exception then, and no handler is there. PVH starts it.

    .include "long-mode-x86_64.s"
    mov %cr0, %r13
    and $~0xc, %r13
    mov $0x3ff8000000000000, %rax   # 1.5
    mov %r13, %cr0
    movq %rax, %xmm0
    xor %ebx, %ebx
1:  xor %r12d, %r12d                # on, TS, EM
    call one
    mov $8, %r12d
    call one
    mov $4, %r12d
    call one
    cmp $CALLS, %rbx
    jb 1b
    mov $0xf4, %edx
    xor %eax, %eax
    out %al, %dx
park:
    cli
    hlt
    jmp park

one:
    or %r13, %r12
    mov %r12, %cr0
    inc %rbx
    mov %rbx, %rdi
    call take
    ret
