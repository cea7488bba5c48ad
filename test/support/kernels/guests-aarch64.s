// A hypervisor at EL2 for QEMU's arm `virt` with virtualization=on. It calls `work` CALLS times, and then has a guest at
// EL1 call it as often. The guest's second stage has the 2 MiB of this program and nothing else: whatever it does
// elsewhere is a fault that ends the machine. At the end the number of all calls is printed.
        .equ    UART, 0x09000000
        .equ    TABLES, 0x40300000
        .globl  _start
        .type   _start, %function
_start: ldr     x0, =0x40280000
        mov     sp, x0
        ldr     x0, =vectors
        msr     vbar_el2, x0
        mov     x20, 0                  // calls of work
        ldr     x19, =CALLS
1:      bl      work
        subs    x19, x19, 1
        b.ne    1b
        // Level 1: its second entry leads to level 2, whose second maps 0x40200000: normal memory, read and written.
        ldr     x1, =TABLES
        add     x2, x1, 0x1000
        orr     x3, x2, 3
        str     x3, [x1, 8]
        ldr     x3, =0x402007fd
        str     x3, [x2, 8]
        msr     vttbr_el2, x1
        ldr     x0, =0x80023559         // VTCR_EL2: 39 bits, from level 1 on, 4 KiB, 40 bits of physical addresses
        msr     vtcr_el2, x0
        ldr     x0, =0x80000001         // HCR_EL2: RW, VM
        msr     hcr_el2, x0
        mov     x0, 0x3c5               // EL1h, interrupts off
        msr     spsr_el2, x0
        adr     x0, guest
        msr     elr_el2, x0
        ldr     x0, =0x40290000
        msr     sp_el1, x0
        isb
        eret
        .size   _start, . - _start

        .type   guest, %function
guest:  ldr     x19, =CALLS
1:      bl      work
        subs    x19, x19, 1
        b.ne    1b
        hvc     0
        .size   guest, . - guest

        .type   work, %function
work:   stp     x29, x30, [sp, -16]!
        mov     x29, sp
        add     x20, x20, 1
        ldp     x29, x30, [sp], 16
        ret
        .size   work, . - work

        .type   end, %function
end:    mov     x4, 10
        mov     x3, 10000
        ldr     x1, =UART
2:      udiv    x5, x20, x3
        msub    x20, x5, x3, x20
        add     x5, x5, 48
        strb    w5, [x1]
        udiv    x3, x3, x4
        cbnz    x3, 2b
        strb    w4, [x1]
        ldr     w0, =0x84000008         // SYSTEM_OFF
        smc     0
        .size   end, . - end
        .ltorg

        .balign 0x800
        .type   vectors, %function
vectors:
        .rept   8
        b       off
        .balign 0x80
        .endr
        // From EL1: hvc, and what the second stage does not map.
        mrs     x0, esr_el2
        lsr     x0, x0, 26
        cmp     x0, 0x16
        b.eq    end
off:    mov     x20, 0
        b       end
        .size   vectors, . - vectors
