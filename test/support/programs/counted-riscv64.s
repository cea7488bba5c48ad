# The program that every riscv64 stub is tried with, assembled with
#   PLACE  0: a bare machine like QEMU's virt (UART, test finisher), 1: a Linux process
#   BEGIN  1; or 0: waits until somebody writes `begin`
#   HARTS  how many harts run, CALLS how often each of them calls `work`
# Each hart calls `work(call, hart)` CALLS times and counts in counters[hart]. When all have, hart 0 calls `arrived` once, spins
# until somebody writes `release`, prints "calls N", the sum of the counters, and ends with status 7.

    .option norelax
    .text
    .globl _start, work, arrived, spin, counters, scratch, release, begin
_start:
.if PLACE
    li s0, 0
.else
    csrr s0, mhartid
.endif
    la sp, stacks
    addi t0, s0, 1
    slli t0, t0, 8
    add sp, sp, t0
    # Who attaches to a process sets `begin`.
    la t1, begin
8:  ld t0, 0(t1)
    beqz t0, 8b
    li s2, 0
1:  mv a0, s2
    mv a1, s0
    call work
.ifdef IN_ROM
    mv a0, s2
    lui t1, %hi(rom_work)
    jalr %lo(rom_work)(t1)
.endif
    addi s2, s2, 1
    li t0, CALLS
    bne s2, t0, 1b

    la s3, finished
.if HARTS > 1
    li t1, 1
    amoadd.d zero, t1, (s3)
    beqz s0, 3f
2:  wfi
    j 2b
3:  ld t1, 0(s3)
    li t0, HARTS
    bne t1, t0, 3b
.endif
    call arrived
    la s3, release
spin:
    ld t0, 0(s3)
    beqz t0, spin

    la t0, counters
    li t1, HARTS
    li a0, 0
4:  ld t2, 0(t0)
    add a0, a0, t2
    addi t0, t0, 8
    addi t1, t1, -1
    bnez t1, 4b
    # Decimal digits, from the last.
    la s4, text_end
    addi s5, s4, -1
    li t1, 10
5:  remu t2, a0, t1
    divu a0, a0, t1
    addi t2, t2, '0'
    addi s5, s5, -1
    sb t2, 0(s5)
    bnez a0, 5b
    la a0, label
    li a1, 6
    call print
    mv a0, s5
    sub a1, s4, s5
    call print
.if PLACE
    li a7, 93
    li a0, 7
    ecall
.else
    li t0, 0x100000
    li t1, 0x73333
    sw t1, 0(t0)
.endif
6:  j 6b

print:
.if PLACE
    mv a2, a1
    mv a1, a0
    li a0, 1
    li a7, 64
    ecall
.else
    li t0, 0x10000000
7:  lbu t1, 0(a0)
    sb t1, 0(t0)
    addi a0, a0, 1
    addi a1, a1, -1
    bnez a1, 7b
.endif
    ret

work:
    addi sp, sp, -16
    sd ra, 8(sp)
    la t0, counters
    slli t1, a1, 3
    add t0, t0, t1
    ld t1, 0(t0)
    addi t1, t1, 1
    sd t1, 0(t0)
    ld ra, 8(sp)
    addi sp, sp, 16
    ret

arrived:
    nop
    ret

.ifdef IN_ROM
    .section .rom, "ax", @progbits
    .globl rom_work
rom_work:
    addi a0, a0, 1
    ret
.endif

    .data
    .balign 8
counters: .fill 8, 8, 0
finished: .quad 0
release:  .quad 0
begin:    .quad BEGIN
scratch:  .ascii "0123456789abcdefghijklmnopqrstuv"
label:    .ascii "calls "
          .fill 20, 1, 0
          .byte 10
text_end:
    .balign 16
stacks:   .fill 8 * 256, 1, 0
