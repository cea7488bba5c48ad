# A supervisor-mode kernel whose program has a page table without the kernel, but for one page, the portal: traps begin
# there, and turn to the kernel's table. Assembled with
#   CALLS   how often it calls `work`, and then its program
#   SPIN    turns of the program before it calls the kernel
# It prints how often `work` was called, counted by the function itself, and powers off.

    .option norelax
    .option norvc
    .include "counted-riscv64.s"
    .equ PORTAL, 0xfffffffffffff000
    .equ PROGRAM, 0x10000

    .macro table entry, to          # the entry at `entry` leads to the table `to`
    la t1, \to
    srli t1, t1, 2
    ori t1, t1, 1
    sd t1, 0(\entry)
    .endm
    .macro page entry, of, bits     # the entry at `entry` maps the page `of`
    la t1, \of
    srli t1, t1, 2
    ori t1, t1, \bits
    sd t1, 0(\entry)
    .endm

    .text
    .globl _start
_start:
    la sp, stack_end
    la t0, root
    li t1, 0xc7                     # devices, where they are: V R W A D
    sd t1, 0(t0)
    addi t2, t0, 16
    table t2, level1
    li t2, 511 * 8
    add t2, t2, t0
    table t2, portal1
    la t3, level1
    li t1, (0x80000000 >> 2) | 0xcf # RAM, where it is: V R W X A D
    sd t1, 0(t3)
    li t2, 0x200000 >> 2
    add t1, t1, t2
    sd t1, 8(t3)
    li t2, 511 * 8
    la t3, portal1
    add t3, t3, t2
    table t3, portal0
    la t3, portal0
    add t3, t3, t2
    page t3, portal, 0x4b           # V R X A
    la t3, program_root
    add t4, t3, t2
    table t4, portal1
    table t3, program1
    la t3, program1
    table t3, program0
    la t3, program0 + 16 * 8
    page t3, program, 0x5b          # V R X U A
    la s3, root
    srli s3, s3, 12
    li s5, 8 << 60                  # Sv39
    or s3, s3, s5
    la s4, program_root
    srli s4, s4, 12
    or s4, s4, s5
    sfence.vma
    csrw satp, s3
    sfence.vma
    li t0, PORTAL + 12              # trap
    csrw stvec, t0
    la tp, back
    li s2, CALLS
1:  call work
    csrw sscratch, s3
    li t0, PROGRAM
    csrw sepc, t0
    li t0, 1 << 8                   # SPP: to user mode
    csrc sstatus, t0
    li t0, PORTAL
    jr t0
back:
    addi s2, s2, -1
    bnez s2, 1b
    la t0, works
    ld a0, 0(t0)
    call number
    li t0, 0x100000
    li t1, 0x5555
    sw t1, 0(t0)
2:  j 2b

    counted work, works

    .include "number-riscv64.s"

    .balign 4096
portal:
    csrw satp, s4
    sfence.vma
    sret
    .balign 4
trap:
    csrrw a0, sscratch, a0
    csrw satp, a0
    sfence.vma
    jr tp
    .balign 4096
program:
    li t0, SPIN
4:  addi t0, t0, -1
    bnez t0, 4b
    ecall
    .balign 4096

    .bss
    .balign 4096
root:
    .skip 4096
level1:
    .skip 4096
portal1:
    .skip 4096
portal0:
    .skip 4096
program_root:
    .skip 4096
program1:
    .skip 4096
program0:
    .skip 4096
works:
    .skip 8
    .skip 4096
stack_end:
