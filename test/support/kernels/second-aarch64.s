# The same as second-riscv64.s for aarch64: PSCI starts the second processor where the kernel is loaded.

    .equ OFFSET, BASE - 0x40000000
    .equ RAM_BLOCK, 0x701           // 2 MiB, accessed, shared, attributes 0
    .equ DEVICES, 0x405             // 1 GiB, attributes 1

    .macro high name                // goes on there, where it is linked
    ldr x8, =OFFSET
    add sp, sp, x8
    adr x9, \name
    add x9, x9, x8
    br x9
    .endm

    .macro counted name, counter
    .globl \name
    .type \name, %function
\name:
    sub sp, sp, #16
    adrp x8, \counter
    ldr x9, [x8, :lo12:\counter]
    add x9, x9, #1
    str x9, [x8, :lo12:\counter]
    add sp, sp, #16
    ret
    .size \name, . - \name
    .endm

    .text
    .globl _start
_start:
    adrp x8, stack_end
    add sp, x8, :lo12:stack_end
    bl shared
    bl paging
    high first

    .globl _start_second
_start_second:                      // x0: its stack
    mov sp, x0
    bl shared
    bl paging
    high second
    .ltorg

first:
    mov x19, #SEEN
1:  bl shared
    subs x19, x19, #1
    b.ne 1b
    bl works_of_one
    ldr x8, =OFFSET
    ldr x0, =0xc4000003             // PSCI, CPU_ON
    mov x1, #1
    adr x2, _start_second
    sub x2, x2, x8
    adrp x3, second_end
    add x3, x3, :lo12:second_end
    sub x3, x3, x8
    hvc #0
    adrp x20, done
2:  ldr x0, [x20, :lo12:done]
    cbz x0, 2b
    adrp x20, shareds
    ldr x0, [x20, :lo12:shareds]
    bl number
    adrp x20, works
    ldr x0, [x20, :lo12:works]
    bl number
    ldr x0, =0x84000008             // PSCI, SYSTEM_OFF
    hvc #0
    b park

second:
    bl works_of_one
    adrp x8, done
    mov x9, #1
    str x9, [x8, :lo12:done]
park:
    wfi
    b park
    .ltorg

works_of_one:
    stp x19, x30, [sp, #-16]!
    mov x19, #CALLS
3:  bl work
    subs x19, x19, #1
    b.ne 3b
    ldp x19, x30, [sp], #16
    ret

# 2 MiB pages of the kernel, where it is loaded and where it is linked, and the devices.
    .globl paging
    .type paging, %function
paging:
    sub sp, sp, #16
    adrp x8, lower
    adrp x9, upper
    adrp x10, level2
    orr x11, x10, #3
    str x11, [x8, #8]               // 0x40000000
    str x11, [x9, #510 * 8]         // BASE
    mov x11, #DEVICES
    str x11, [x8]
    ldr x11, =0x40000000 + RAM_BLOCK
    str x11, [x10]
    ldr x11, =0x40200000 + RAM_BLOCK
    str x11, [x10, #8]
    mov x11, #0x00ff                // MAIR: 0 normal, 1 device
    msr mair_el1, x11
    ldr x11, =0x2b5193519           // 39 bits each, 4 KiB, 40 bits of physical addresses
    msr tcr_el1, x11
    msr ttbr0_el1, x8
    msr ttbr1_el1, x9
    isb
    mrs x11, sctlr_el1
    orr x11, x11, #1
    msr sctlr_el1, x11
    isb
    add sp, sp, #16
    ret
    .ltorg
    .size paging, . - paging

    counted shared, shareds

    counted work, works

number:                             // x0 in five digits
    mov x8, #0x09000000
    mov x9, #10000
    mov x10, #10
4:  udiv x11, x0, x9
    msub x0, x11, x9, x0
    add x11, x11, #'0'
    str w11, [x8]
    udiv x9, x9, x10
    cbnz x9, 4b
    str w10, [x8]
    ret

    .bss
    .balign 4096
lower:
    .skip 4096
upper:
    .skip 4096
level2:
    .skip 4096
shareds:
    .skip 8
works:
    .skip 8
done:
    .skip 8
    .skip 4096
    .balign 16
stack_end:
    .skip 4096
second_end:
