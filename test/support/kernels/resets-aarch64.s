// A kernel of two processors for QEMU's arm `virt`. The second one is started by PSCI at the same entry, and sleeps. The
// first one calls `outer`, which calls `inner` twice, says how often, and resets the machine by PSCI, RESETS times. How
// often that was lies behind what QEMU loads anew; in the end it powers the machine off.
        .equ    UART, 0x09000000
        .equ    BOOTS, 0x40400000
        .globl  _start
        .type   _start, %function
_start: mrs     x0, mpidr_el1
        tst     x0, 0xff
        b.ne    sleep
        ldr     x0, =0x40300000
        mov     sp, x0
        ldr     w0, =0xc4000003         // PSCI CPU_ON: DEN0022, 5.6
        mov     x1, 1
        adr     x2, _start
        hvc     0
        ldr     x19, =CALLS
        mov     x20, 0                  // calls of outer
        mov     x21, 0                  // and of inner
        mov     x22, 0
1:      bl      outer
        subs    x19, x19, 1
        b.ne    1b
        adr     x0, hart
        bl      text
        mov     x0, x20
        bl      number
        adr     x0, with
        bl      text
        mov     x0, x21
        bl      number
        adr     x0, ticks
        bl      text
        mov     x0, x22
        bl      number
        adr     x0, end
        bl      text
        ldr     x1, =BOOTS
        ldr     x0, [x1]
        add     x0, x0, 1
        str     x0, [x1]
        ldr     x2, =RESETS
        cmp     x0, x2
        ldr     w0, =0x84000009         // SYSTEM_RESET
        ldr     w3, =0x84000008         // SYSTEM_OFF
        csel    w0, w3, w0, hi
        hvc     0
sleep:  wfi
        b       sleep
        .size   _start, . - _start

        .type   outer, %function
outer:  stp     x29, x30, [sp, -16]!
        mov     x29, sp
        add     x20, x20, 1
        add     x22, x22, x20
        bl      inner
        bl      inner
        ldp     x29, x30, [sp], 16
        ret
        .size   outer, . - outer

        .type   inner, %function
inner:  stp     x29, x30, [sp, -16]!
        mov     x29, sp
        add     x21, x21, 1
        ldp     x29, x30, [sp], 16
        ret
        .size   inner, . - inner

        .type   text, %function
text:   ldr     x1, =UART
1:      ldrb    w2, [x0], 1
        cbz     w2, 2f
        strb    w2, [x1]
        b       1b
2:      ret
        .size   text, . - text

        // x0 in decimal.
        .type   number, %function
number: ldr     x1, =UART
        mov     x2, 10
        mov     x3, 1
1:      mul     x4, x3, x2
        cmp     x4, x0
        b.hi    2f
        mov     x3, x4
        b       1b
2:      udiv    x4, x0, x3
        msub    x0, x4, x3, x0
        add     x4, x4, 48
        strb    w4, [x1]
        udiv    x3, x3, x2
        cbnz    x3, 2b
        ret
        .size   number, . - number

hart:   .asciz  "hart 0 outer "
with:   .asciz  " inner "
ticks:  .asciz  " ticks 0 sum "
end:    .asciz  "\n"
