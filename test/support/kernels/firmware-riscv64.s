# A supervisor-mode kernel with firmware of its own in the same ELF, assembled with
#   CALLS   how often it calls `work`, and then the firmware, which calls `served` in machine mode
# The kernel pages, with 4 MiB of RAM where they are. It prints how often `work` and `served` were called, counted by the
# functions themselves, and powers off.

    .option norelax
    .option norvc
    .include "counted-riscv64.s"
    .text
    .globl _start
_start:
    la sp, firmware_stack_end
    csrw mscratch, sp
    la t0, trap
    csrw mtvec, t0
    li t0, -1                       # every counter, and all memory, for everybody
    csrw mcounteren, t0
    csrw pmpaddr0, t0
    li t0, 0x0f
    csrw pmpcfg0, t0
    li t0, 0x1800
    csrc mstatus, t0
    li t0, 0x800                    # MPP = S
    csrs mstatus, t0
    la t0, kernel
    csrw mepc, t0
    mret

# Every trap is a call of the kernel.
    .balign 4
trap:
    csrrw sp, mscratch, sp
    addi sp, sp, -48
    sd ra, 0(sp)
    sd t0, 8(sp)
    sd t1, 16(sp)
    sd t2, 24(sp)
    sd a0, 32(sp)
    call served
    csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    ld ra, 0(sp)
    ld t0, 8(sp)
    ld t1, 16(sp)
    ld t2, 24(sp)
    ld a0, 32(sp)
    addi sp, sp, 48
    csrrw sp, mscratch, sp
    mret

    counted served, serveds

    .globl kernel
    .type kernel, @function
kernel:
    la sp, stack_end
    la t0, root
    li t1, 0xc7                     # devices, where they are: V R W A D
    sd t1, 0(t0)
    la t3, level1
    srli t1, t3, 2
    ori t1, t1, 1
    sd t1, 16(t0)
    li t1, (0x80000000 >> 2) | 0xcf # RAM, where it is: V R W X A D
    sd t1, 0(t3)
    li t2, 0x200000 >> 2
    add t1, t1, t2
    sd t1, 8(t3)
    srli t0, t0, 12
    li t1, 8 << 60                  # Sv39
    or t0, t0, t1
    sfence.vma
    csrw satp, t0
    sfence.vma
    li s2, CALLS
1:  call work
    ecall
    addi s2, s2, -1
    bnez s2, 1b
    la t0, works
    ld a0, 0(t0)
    call number
    la t0, serveds
    ld a0, 0(t0)
    call number
    li t0, 0x100000
    li t1, 0x5555
    sw t1, 0(t0)
2:  j 2b
    .size kernel, . - kernel

    counted work, works

    .include "number-riscv64.s"

    .bss
    .balign 4096
root:
    .skip 4096
level1:
    .skip 4096
works:
    .skip 8
serveds:
    .skip 8
    .skip 4096
stack_end:
    .skip 4096
firmware_stack_end:
