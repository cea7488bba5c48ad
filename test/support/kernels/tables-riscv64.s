# A supervisor-mode kernel that is linked high and changes its page table twice, assembled with
#   EARLY   how often it calls `early`, where it is loaded, before it turns paging on
#   MIDDLE  how often it calls `middle`, with a table of 1 GiB pages
#   WAIT    so many ticks of the 10 MHz clock it waits then
#   WORK    how often it calls `work`, with its last table
#   RAM     MiB of RAM that its last table maps, whatever the device tree says; 0: only the kernel's own 4
# It prints the three numbers, counted by the functions themselves, and powers off.

    .option norelax
    .option norvc
    .include "counted-riscv64.s"
    .section .boot, "ax"
    .globl _start
_start:
    la sp, boot_stack
    li s2, EARLY
1:  call early
    addi s2, s2, -1
    bnez s2, 1b
    la t0, boot_root
    li t1, 0xc7                     # devices, where they are: V R W A D
    sd t1, 0(t0)
    li t1, (0x80000000 >> 2) | 0xcf # RAM, where it is: V R W X A D
    sd t1, 16(t0)
    li t2, 510 * 8                  # and at 0xffffffff80000000
    add t2, t2, t0
    sd t1, 0(t2)
    srli t0, t0, 12
    li t1, 8 << 60                  # Sv39
    or t0, t0, t1
    sfence.vma
    csrw satp, t0
    sfence.vma
    la t0, high_address
    ld t0, 0(t0)
    la a1, earlies
    jr t0

    counted early, earlies
    .balign 8
high_address:
    .dword high
earlies:
    .skip 8
    .balign 4096
boot_root:
    .skip 4096
    .skip 4096
boot_stack:

    .text
high:
    la sp, stack_end
    ld s3, 0(a1)
    li s2, MIDDLE
1:  call middle
    addi s2, s2, -1
    bnez s2, 1b
    call settle
    li s2, WORK
2:  call work
    addi s2, s2, -1
    bnez s2, 2b
    mv a0, s3
    call number
    la t0, middles
    ld a0, 0(t0)
    call number
    la t0, works
    ld a0, 0(t0)
    call number
    li t0, 0x100000
    li t1, 0x5555
    sw t1, 0(t0)
park:
    wfi
    j park

# The last table: 2 MiB pages of the kernel and the devices, and nothing where the RAM is. Other RAM is not executable.
    .globl paging
    .type paging, @function
paging:
    addi sp, sp, -16
    la t0, root
    la t3, level1
    li t4, -BASE + 0x80000000
    li t1, 0xc7
    sd t1, 0(t0)
    add t1, t3, t4
    srli t1, t1, 2
    ori t1, t1, 1
    li t2, 510 * 8
    add t2, t2, t0
    sd t1, 0(t2)
    li t1, (0x80000000 >> 2) | 0xcf
    sd t1, 0(t3)                    # 4 MiB
    li t2, 0x200000 >> 2
    add t1, t1, t2
    sd t1, 8(t3)
    addi t5, t3, 16
    li t6, RAM / 2 - 2
    andi t1, t1, ~8                 # without X
4:  blez t6, 5f
    add t1, t1, t2
    sd t1, 0(t5)
    addi t5, t5, 8
    addi t6, t6, -1
    j 4b
5:  add t0, t0, t4
    srli t0, t0, 12
    li t1, 8 << 60
    or t0, t0, t1
    sfence.vma
    csrw satp, t0
    sfence.vma
    addi sp, sp, 16
    ret
    .size paging, . - paging

# Is open while the table changes.
    .globl settle
    .type settle, @function
settle:
    addi sp, sp, -16
    sd ra, 8(sp)
    rdtime t0
    li t1, WAIT
    add t1, t1, t0
3:  rdtime t0
    bltu t0, t1, 3b
    call paging
    ld ra, 8(sp)
    addi sp, sp, 16
    ret
    .size settle, . - settle

    counted middle, middles

    counted work, works

    .include "number-riscv64.s"

    .bss
    .balign 4096
root:
    .skip 4096
level1:
    .skip 4096
middles:
    .skip 8
works:
    .skip 8
    .skip 4096
stack_end:
