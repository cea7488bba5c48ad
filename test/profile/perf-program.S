# A program of Linux on x86_64 that computes in `inner`, called by `outer`, and asks its kernel for much in `asks`.
# Linked to fixed addresses, so that perf-recording.bin is of every build of it.
.globl _start
.text
_start:
    .cfi_startproc
    .cfi_undefined rip
1:  call outer
    call asks
    jmp 1b
    .cfi_endproc
.size _start, . - _start
.type _start, @function

outer:
    .cfi_startproc
    sub $24, %rsp
    .cfi_adjust_cfa_offset 24
    call inner
    add $24, %rsp
    .cfi_adjust_cfa_offset -24
    ret
    .cfi_endproc
.size outer, . - outer
.type outer, @function

inner:
    .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset 8
    mov $20000000, %ebx
1:  dec %ebx
    jnz 1b
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
.size inner, . - inner
.type inner, @function

asks: # getppid, which waits for nothing
    .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset 8
    mov $100000, %ebx
1:  mov $110, %eax
    syscall
    dec %ebx
    jnz 1b
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
.size asks, . - asks
.type asks, @function
