// A kernel at EL1 without paging whose harts all run the same functions at once, under a timer interrupt each, assembled with
//   HARTS, CALLS, PERIOD (of a 10 MHz timer), TICKS as harts-riscv64.s has them, which says what is printed.
// x28 is the hart's number. Hart 0 starts the others by PSCI.

        .text
        .globl  _start
_start: mrs     x28, mpidr_el1
        and     x28, x28, 0xff
        adr     x19, stacks
        add     x0, x28, 1
        add     x0, x19, x0, lsl 12
        mov     sp, x0
        adr     x19, counters
        add     x19, x19, x28, lsl 6
        adr     x0, vectors
        msr     vbar_el1, x0
        isb
        cbnz    x28, 1f
        mov     x20, 1
0:      cmp     x20, HARTS
        b.hs    1f
        ldr     w0, =0xc4000003         // PSCI CPU_ON: DEN0022, 5.6
        mov     x1, x20
        adr     x2, _start
        hvc     0
        add     x20, x20, 1
        b       0b
        // From here on all call at once.
1:      adr     x0, ready
        bl      meet
        .if PERIOD
        ldr     x0, =0x08000000         // GICv2: all interrupts, the virtual timer's of this hart
        mov     w1, 1
        str     w1, [x0]
        mov     w1, 1 << 27
        str     w1, [x0, 0x100]
        ldr     x0, =0x08010000
        mov     w1, 0xff
        str     w1, [x0, 4]
        mov     w1, 1
        str     w1, [x0]
        bl      arm
        msr     cntv_ctl_el0, x1
        msr     daifclr, 2
        .endif
        mov     x20, 0
        mov     x21, 0
        ldr     x22, =CALLS
1:      mov     x0, x20
        mov     x1, x28
        bl      outer
        add     x21, x21, x0
        add     x20, x20, 1
        cmp     x20, x22
        b.lo    1b
        ldr     x1, =TICKS
        ldr     x0, [x19, 16]
        cmp     x0, x1
        b.lo    1b
        .if PERIOD
        // One interrupt at least, however fast that was.
2:      ldr     x0, [x19, 16]
        cbz     x0, 2b
        .endif
        msr     daifset, 2
        str     x21, [x19, 24]
        adr     x0, finished
        bl      meet
        cbnz    x28, park

        // Who traces may stop here: nothing that is traced comes after it.
        bl      drained
        mov     x20, 0
3:      adr     x19, counters
        add     x19, x19, x20, lsl 6
        mov     x1, x20
        adr     x0, l_hart
        bl      line
        ldr     x1, [x19]
        adr     x0, l_outer
        bl      line
        ldr     x1, [x19, 8]
        adr     x0, l_inner
        bl      line
        ldr     x1, [x19, 16]
        adr     x0, l_ticks
        bl      line
        ldr     x1, [x19, 24]
        adr     x0, l_sum
        bl      line
        adr     x0, l_end
        bl      text
        add     x20, x20, 1
        cmp     x20, HARTS
        b.ne    3b
        ldr     w0, =0x84000008         // SYSTEM_OFF
        hvc     0
park:   wfi
        b       park

        // Counts up at x0, and waits until all harts have.
meet:   ldxr    x1, [x0]
        add     x1, x1, 1
        stxr    w2, x1, [x0]
        cbnz    w2, meet
        dmb     sy
1:      ldr     x1, [x0]
        cmp     x1, HARTS
        b.lo    1b
        dmb     sy
        ret

        // The text at x0, then x1 in decimal.
line:   mov     x7, x30
        mov     x6, x1
        bl      text
        mov     x1, 10
        adr     x0, digits_end
1:      udiv    x2, x6, x1
        msub    x3, x2, x1, x6
        add     x3, x3, 48
        strb    w3, [x0, -1]!
        mov     x6, x2
        cbnz    x6, 1b
        mov     x30, x7
text:   mov     x1, 0x09000000
1:      ldrb    w2, [x0], 1
        cbz     w2, 2f
        strb    w2, [x1]
        b       1b
2:      ret

        .globl  drained
        .type   drained, %function
drained: ret
        .size   drained, . - drained

        // The next interrupt of this hart: PERIOD from now, of a counter of 62.5 MHz.
arm:    ldr     x1, =PERIOD * 25 / 4
        msr     cntv_tval_el0, x1
        mov     x1, 1
        ret

irq:    sub     sp, sp, 176
        stp     x0, x1, [sp]
        stp     x2, x3, [sp, 16]
        stp     x4, x5, [sp, 32]
        stp     x6, x7, [sp, 48]
        stp     x8, x9, [sp, 64]
        stp     x10, x11, [sp, 80]
        stp     x12, x13, [sp, 96]
        stp     x14, x15, [sp, 112]
        stp     x16, x17, [sp, 128]
        stp     x18, x30, [sp, 144]
        ldr     x0, =0x08010000
        ldr     w1, [x0, 0xc]
        str     x1, [sp, 160]
        bl      arm
        ldr     x0, [x19, 16]
        mov     x1, x28
        bl      tick
        ldr     x1, [sp, 160]
        ldr     x0, =0x08010000
        str     w1, [x0, 0x10]
        ldp     x0, x1, [sp]
        ldp     x2, x3, [sp, 16]
        ldp     x4, x5, [sp, 32]
        ldp     x6, x7, [sp, 48]
        ldp     x8, x9, [sp, 64]
        ldp     x10, x11, [sp, 80]
        ldp     x12, x13, [sp, 96]
        ldp     x14, x15, [sp, 112]
        ldp     x16, x17, [sp, 128]
        ldp     x18, x30, [sp, 144]
        add     sp, sp, 176
        eret

        .balign 2048
vectors: .rept  5
        b       park
        .balign 128
        .endr
        b       irq
        .balign 128
        .rept   10
        b       park
        .balign 128
        .endr

        .macro  function name
        .globl  \name
        .type   \name, %function
\name:
        .endm

        .macro  counts offset
        adr     x2, counters
        add     x2, x2, x1, lsl 6
        ldr     x3, [x2, \offset]
        add     x3, x3, 1
        str     x3, [x2, \offset]
        .endm

        function outer
        stp     x29, x30, [sp, -16]!
        counts  0
        bl      inner
        add     x0, x0, 1
        ldp     x29, x30, [sp], 16
        ret
outer_end:
        .size   outer, . - outer

        function inner
        add     x0, x0, x0, lsl 1
        counts  8
        add     x0, x0, x1
        ret
inner_end:
        .size   inner, . - inner

        function tick
        counts  16
        ret
tick_end:
        .size   tick, . - tick

        .ltorg
l_hart:  .asciz "hart "
l_outer: .asciz " outer "
l_inner: .asciz " inner "
l_ticks: .asciz " ticks "
l_sum:   .asciz " sum "
l_end:   .asciz "\n"

        .balign 64
counters: .fill 8 * 8, 8, 0
ready:    .quad 0
finished: .quad 0
digits:   .fill 20, 1, 0
digits_end: .byte 0
        .balign 16
stacks:   .skip 9 * 4096

        .equ    FIRST, 0                // x0
        .equ    SECOND, 1
        .include "harts-debug.s"
