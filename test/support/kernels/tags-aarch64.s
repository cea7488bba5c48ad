// A kernel at EL1 for QEMU's arm `virt` with mte=on, whose memory is checked by tags: SCTLR_EL1.TCF is 1 (a wrong tag is a
// fault), TCR_EL1.TBI0 is set, TCMA0 is not, so that tag 0 is checked too. RAM is tagged memory. It calls `work` CALLS
// times with a pointer to memory of another tag each time, which `work` sets; `work` uses a stack with a tag. Then a
// program at EL0 runs, whose page can be executed and nothing else, and calls `leaf` as often, before each system call.
// At the end the number of all calls is printed; a fault prints less.
        .arch   armv8.5-a+memtag
        .equ    UART, 0x09000000
        .equ    TABLES, 0x40300000
        .equ    HEAP, 0x40310000
        .globl  _start
        .type   _start, %function
_start: ldr     x0, =0x402f0000
        mov     sp, x0
        ldr     x0, =vectors
        msr     vbar_el1, x0
        // Level 1: devices, and level 2 for RAM, all of whose 2 MiB are tagged normal memory; the program's are executed
        // at EL0 alone.
        ldr     x1, =TABLES
        add     x2, x1, 0x1000
        ldr     x3, =0x60000000000401
        orr     x4, x2, 3
        stp     x3, x4, [x1]
        ldr     x3, =0x40000709 | 1 << 54
        mov     x4, 512
1:      str     x3, [x2], 8
        add     x3, x3, 0x200000
        subs    x4, x4, 1
        b.ne    1b
        sub     x2, x2, 0x1000
        ldr     x3, =0x40400789 | 1 << 53       // AP 2: not read at EL0, and not written; PXN
        str     x3, [x2, 16]
        ldr     x0, =0xf0ff00
        msr     mair_el1, x0
        ldr     x0, =0x2200803519       // TBI0, 40 bits of physical addresses, TTBR1 off, T0SZ 25
        msr     tcr_el1, x0
        msr     ttbr0_el1, x1
        mov     x0, 3 << 20
        msr     cpacr_el1, x0
        isb
        mrs     x0, sctlr_el1
        ldr     x1, =1 << 43 | 1 << 40 | 0x1005
        orr     x0, x0, x1
        msr     sctlr_el1, x0
        isb
        msr     tco, 0
        mov     x20, 0                  // calls
        ldr     x19, =CALLS
        // A stack of 64 KiB with tag 5.
        ldr     x0, =0x402e0000 | 5 << 56
        mov     x1, 0x10000
2:      stg     x0, [x0], 16
        subs    x1, x1, 16
        b.ne    2b
        mov     sp, x0
        ldr     x21, =HEAP
3:      and     x1, x19, 15
        orr     x0, x21, x1, lsl 56
        stg     x0, [x0]
        bl      work
        subs    x19, x19, 1
        b.ne    3b
        ldr     x19, =CALLS
        ldr     x0, =user
        msr     elr_el1, x0
        msr     spsr_el1, xzr
        eret
        .size   _start, . - _start

        // The first instruction accesses tagged memory.
        .type   work, %function
work:   ldr     x2, [x0]
        stp     x29, x30, [sp, -32]!
        mov     x29, sp
        add     x2, x2, 1
        str     x2, [x0]
        add     x1, sp, 16
        str     x2, [x1]
        bl      tagged
        ldr     x1, [x1]
        cmp     x1, x2
        b.ne    4f
        add     x20, x20, 1
4:      ldp     x29, x30, [sp], 32
        ret
        .size   work, . - work

        // And here it makes a tag.
        .type   tagged, %function
tagged: addg    x3, x0, 16, 3
        stg     x3, [x3]
        str     x2, [x3]
        ldr     x2, [x0]
        ret
        .size   tagged, . - tagged

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
        mov     w0, 8                   // SYSTEM_OFF, as compilers load it
        movk    w0, 0x8400, lsl 16
        hvc     0
        .size   end, . - end

        .type   called, %function
called: add     x20, x20, 1
        ret
        .size   called, . - called

        .type   system, %function
system: mrs     x0, esr_el1
        lsr     x0, x0, 26
        cmp     x0, 0x15
        b.ne    end
        bl      called
        subs    x19, x19, 1
        b.eq    end
        eret
        .size   system, . - system
        .ltorg

        .balign 0x800
        .type   vectors, %function
vectors:
        .rept   8
        b       end
        .balign 0x80
        .endr
        .rept   8
        b       system
        .balign 0x80
        .endr
        .size   vectors, . - vectors

        .section .user, "ax"
        .type   user, %function
user:   bl      leaf
        svc     0
        b       user
        .size   user, . - user

        .type   leaf, %function
leaf:   add     x5, x5, 1
        nop
        nop
        ret
        .size   leaf, . - leaf
