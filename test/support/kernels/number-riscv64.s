# Prints a0 as five digits and a line's end, on the first serial port of QEMU's `virt`.
    .globl number
    .type number, @function
number:
    li t0, 0x10000000
    li t1, 10000
    li t2, 10
3:  divu t3, a0, t1
    remu a0, a0, t1
    addi t3, t3, '0'
    sb t3, 0(t0)
    divu t1, t1, t2
    bnez t1, 3b
    sb t2, 0(t0)
    ret
    .size number, . - number
