# A supervisor-mode kernel that turns paging on late, assembled with
#   EARLY   how often it calls `early`, before it turns paging on
#   WORK    how often it calls `work`, afterwards
#   SPIN    how often it loops before it turns paging on, in the page where it does, and eight times as often in another one
#             afterwards
#   OTHERS  so many functions are called once, afterwards: `other0` and so on
#   RETURNS so many returns happen before it turns paging on, in a page without probes: what breakpoints slow
#   HIGH    how far above the RAM it is linked, and runs from then on; 0: where it runs already
# It prints both numbers, counted by the functions themselves, and powers off.

    .option norelax
    .option norvc

    .macro called number
    call other\number
    .endm

    .macro other number
    .globl other\number
    .type other\number, @function
other\number:
    addi a0, a0, 1
    addi a0, a0, 1
    ret
    .size other\number, . - other\number
    .endm

    .include "counted-riscv64.s"
    .text
    .globl _start
_start:
    la sp, stack_end
    li s2, EARLY
1:  mv a0, s2
    call early
    addi s2, s2, -1
    bnez s2, 1b
    .if SPIN
    li s2, SPIN
3:  addi s2, s2, -1
    bnez s2, 3b
    .endif
    .if RETURNS
    call returns
    .endif
    call paging
    .if SPIN
    call spin
    .endif
    .altmacro
    .set each, 0
    .rept OTHERS
    called %each
    .set each, each + 1
    .endr
    li s2, WORK
2:  mv a0, s2
    call work
    addi s2, s2, -1
    bnez s2, 2b
    la t0, earlies
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

    .globl paging
    .type paging, @function
paging:
    la t0, root
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
    li t0, HIGH
    add sp, sp, t0
    add ra, ra, t0
    ret
    .size paging, . - paging

    counted early, earlies

    counted work, works

    .include "number-riscv64.s"

    .if SPIN
    .balign 4096
spin:
    li t0, SPIN * 8
1:  addi t0, t0, -1
    bnez t0, 1b
    ret
    .endif

    .if RETURNS
    .balign 4096
returns:
    li t0, RETURNS
    mv t2, ra
1:  jal 2f
    addi t0, t0, -1
    bnez t0, 1b
    jr t2
2:  ret
    .balign 4096
    .endif

    .altmacro
    .set each, 0
    .rept OTHERS
    other %each
    .set each, each + 1
    .endr

    .bss
    .balign 4096
root:
    .skip 4096
earlies:
    .skip 8
works:
    .skip 8
    .skip 4096
stack_end:
