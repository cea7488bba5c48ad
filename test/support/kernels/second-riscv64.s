# A supervisor-mode kernel that is linked high, and whose second hart starts late. Assembled with
#   CALLS   how often each hart calls `work`, with paging on
#   SEEN    how often the first hart calls `shared` then
# Both harts call `shared` and `paging` where they are loaded. The kernel prints how often `shared` and `work` were called,
# counted by the functions themselves, and powers off.

    .option norelax
    .option norvc
    .include "counted-riscv64.s"
    .equ OFFSET, BASE - 0x80000000

    .text
    .globl _start
_start:
    mv s0, a0
    la sp, stack_end
    call shared
    call paging
    li t0, OFFSET
    add sp, sp, t0
    la t1, first
    add t1, t1, t0
    jr t1

    .globl _start_second
_start_second:                      # a1: its stack
    mv sp, a1
    call shared
    call paging
    li t0, OFFSET
    add sp, sp, t0
    la t1, second
    add t1, t1, t0
    jr t1

first:
    li s2, SEEN
1:  call shared
    addi s2, s2, -1
    bnez s2, 1b
    call works_of_one
    xori a0, s0, 1
    la a1, _start_second
    la a2, second_end
    li t0, OFFSET
    sub a1, a1, t0
    sub a2, a2, t0
    li a6, 0
    li a7, 0x48534d                 # SBI, hart_start
    ecall
2:  la t0, done
    ld t0, 0(t0)
    beqz t0, 2b
    la t0, shareds
    ld a0, 0(t0)
    call number
    la t0, works
    ld a0, 0(t0)
    call number
    li t0, 0x100000
    li t1, 0x5555
    sw t1, 0(t0)
    j park

second:
    call works_of_one
    la t0, done
    sd sp, 0(t0)
park:
    wfi
    j park

works_of_one:
    addi sp, sp, -16
    sd ra, 8(sp)
    li s2, CALLS
3:  call work
    addi s2, s2, -1
    bnez s2, 3b
    ld ra, 8(sp)
    addi sp, sp, 16
    ret

# 2 MiB pages of the kernel, where it is loaded and where it is linked, and the devices.
    .globl paging
    .type paging, @function
paging:
    addi sp, sp, -16
    la t0, root
    la t3, level1
    li t1, 0xc7                     # V R W A D
    sd t1, 0(t0)
    srli t1, t3, 2
    ori t1, t1, 1
    sd t1, 16(t0)
    li t2, 510 * 8
    add t2, t2, t0
    sd t1, 0(t2)
    li t1, (0x80000000 >> 2) | 0xcf # V R W X A D
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
    addi sp, sp, 16
    ret
    .size paging, . - paging

    counted shared, shareds

    counted work, works

    .include "number-riscv64.s"

    .bss
    .balign 4096
root:
    .skip 4096
level1:
    .skip 4096
shareds:
    .skip 8
works:
    .skip 8
done:
    .skip 8
    .skip 4096
stack_end:
    .skip 4096
second_end:
