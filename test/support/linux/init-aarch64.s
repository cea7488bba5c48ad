// The only program of a Linux that boots in a test: 20 children with 50 system calls each, 1000 of its own, a line, and power off.
        .globl  _start
_start: mov     x19, 20
1:      mov     x8, 220                 // clone(SIGCHLD, 0)
        mov     x0, 17
        mov     x1, 0
        svc     0
        cbnz    x0, 2f
        mov     x20, 50
        bl      ask
        mov     x8, 93                  // exit
        mov     x0, 0
        svc     0
2:      mov     x8, 260                 // wait4(-1, 0, 0, 0)
        mov     x0, -1
        mov     x1, 0
        mov     x2, 0
        mov     x3, 0
        svc     0
        sub     x19, x19, 1
        cbnz    x19, 1b
        mov     x20, 1000
        bl      ask
        mov     x8, 64                  // write
        mov     x0, 1
        adr     x1, text
        mov     x2, 14
        svc     0
        mov     x8, 142                 // reboot(..., POWER_OFF)
        ldr     x0, =0xfee1dead
        ldr     x1, =672274793
        ldr     x2, =0x4321fedc
        svc     0
3:      b       3b

ask:    mov     x8, 173                 // getppid
        svc     0
        sub     x20, x20, 1
        cbnz    x20, ask
        ret
text:   .ascii  "init has ended"
