# The only program of a Linux that boots in a test: 20 children with 50 system calls each, 1000 of its own, a line, and power off.
        .globl  _start
_start: li      s0, 20
1:      li      a7, 220                 # clone(SIGCHLD, 0)
        li      a0, 17
        li      a1, 0
        ecall
        bnez    a0, 2f
        li      s1, 50
        call    ask
        li      a7, 93                  # exit
        li      a0, 0
        ecall
2:      li      a7, 260                 # wait4(-1, 0, 0, 0)
        li      a0, -1
        li      a1, 0
        li      a2, 0
        li      a3, 0
        ecall
        addi    s0, s0, -1
        bnez    s0, 1b
        li      s1, 1000
        call    ask
        li      a7, 64                  # write
        li      a0, 1
        la      a1, text
        li      a2, 14
        ecall
        li      a7, 142                 # reboot(..., POWER_OFF)
        li      a0, 0xfee1dead
        li      a1, 672274793
        li      a2, 0x4321fedc
        ecall
3:      j       3b

ask:    li      a7, 173                 # getppid
        ecall
        addi    s1, s1, -1
        bnez    s1, ask
        ret
text:   .ascii  "init has ended"
