# The program that every x86_64 stub is tried with, assembled with
#   PLACE  0: a bare machine (PVH entry, COM1, isa-debug-exit at 0xf4), 1: a Linux process
#   BEGIN  1; or 0: waits until somebody writes `begin`
#   CALLS  how often it calls `work`
# Calls `work(call, 0)` CALLS times, which counts in counters[0]; calls `arrived` once, spins until somebody writes `release`,
# prints "calls N" and ends with status 7.

    .intel_syntax noprefix
.if PLACE == 0
    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 4, 18
    .asciz "Xen"
    .long _start
    .text
    .code32
    .globl _start
_start:
    # One gigabyte, identity-mapped in 2 MiB pages.
    mov eax, offset pdpt
    or eax, 3
    mov [pml4], eax
    mov eax, offset pd
    or eax, 3
    mov [pdpt], eax
    mov eax, 0x83
    xor ecx, ecx
1:  mov [pd + ecx * 8], eax
    add eax, 0x200000
    inc ecx
    cmp ecx, 512
    jne 1b
    mov eax, offset pml4
    mov cr3, eax
    mov eax, cr4
    or eax, 0x620
    mov cr4, eax
    mov ecx, 0xc0000080
    rdmsr
    or eax, 0x100
    wrmsr
    mov eax, cr0
    or eax, 0x80000001
    mov cr0, eax
    lgdt [gdtr]
    .byte 0xea
    .long start64
    .word 8
    .code64
start64:
    mov ax, 16
    mov ds, ax
    mov es, ax
    mov ss, ax
    lea rsp, [rip + stack_end]
.else
    .text
    .globl _start
_start:
.endif
    # Who attaches to a process sets `begin`.
5:  pause
    cmp qword ptr [rip + begin], 0
    je 5b
    xor ebx, ebx
2:  mov edi, ebx
    xor esi, esi
    call work
    inc ebx
    cmp ebx, CALLS
    jne 2b
    call arrived
    .globl spin
spin:
    pause
    cmp qword ptr [rip + release], 0
    je spin

    mov rax, [rip + counters]
    lea r12, [rip + text_end]
    lea r13, [rip + text_end - 1]
    mov ecx, 10
3:  xor edx, edx
    div rcx
    add dl, '0'
    dec r13
    mov [r13], dl
    test rax, rax
    jnz 3b
    lea rsi, [rip + label]
    mov edx, 6
    call print
    mov rsi, r13
    mov rdx, r12
    sub rdx, r13
    call print
.if PLACE
    mov eax, 60
    mov edi, 7
    syscall
.else
    mov al, 3
    out 0xf4, al
.endif
4:  jmp 4b

print:
.if PLACE
    mov eax, 1
    mov edi, 1
    syscall
.else
    mov rcx, rdx
    mov dx, 0x3f8
    rep outsb
.endif
    ret

    .globl work, arrived
work:
    push rbp
    mov rbp, rsp
    inc qword ptr [rip + counters]
    pop rbp
    ret

arrived:
    nop
    ret

    .data
    .balign 8
    .globl counters, release, scratch, begin
counters: .quad 0
release:  .quad 0
begin:    .quad BEGIN
scratch:  .ascii "0123456789abcdefghijklmnopqrstuv"
label:    .ascii "calls "
          .fill 20, 1, 0
          .byte 10
text_end:
.if PLACE == 0
    .balign 8
gdt:
    .quad 0
    .quad 0x00af9b000000ffff
    .quad 0x00cf93000000ffff
gdtr:
    .word 23
    .quad gdt
    .bss
    .balign 4096
pml4: .skip 4096
pdpt: .skip 4096
pd:   .skip 4096
stack: .skip 4096
stack_end:
.endif
