# A supervisor-mode kernel that pages, in as few instructions as it takes. Linked at BASE + 0x200000, loaded at 0x80200000.
# LEVELS: 3, 4 or 5 (Sv39, Sv48, Sv57). BASE: 0xffffffff80000000, or another address of which only bits 48 to 63 differ. It calls `work` and `outer` 1000 times, each time under the other of two root tables, which
# share the tables below them, prints how often `work` and `inner` came to run, and powers off.
# SCRATCH: it sets memory for trampolines aside.
        .option norvc
        .equ    OFFSET, BASE - 0x80000000
        .cfi_sections .debug_frame
        .equ    TABLE, 0x01             # V
        .equ    CODE, 0xcb              # D A X R V
        .equ    DATA, 0xc7              # D A W R V

        # \entry := page table entry for the physical address in \entry
        .macro  pte entry, bits
        srli    \entry, \entry, 12
        slli    \entry, \entry, 10
        ori     \entry, \entry, \bits
        .endm

        .text
        .globl  _start
_start:
        la      s0, level0
        la      t0, _start
        la      t1, text_end
        la      t2, image_end
1:      mv      t3, t0
        pte     t3, CODE
        bltu    t0, t1, 2f
        xori    t3, t3, CODE ^ DATA
2:      sd      t3, 0(s0)
        addi    s0, s0, 8
        li      t4, 4096
        add     t0, t0, t4
        bltu    t0, t2, 1b

        .ifdef  USER                    # the stack is a page of user mode, which the kernel may use (SUM)
        la      t0, level0
        la      t1, stack - 4096
        la      t2, _start
        sub     t1, t1, t2
        srli    t1, t1, 9
        add     t0, t0, t1
        ld      t1, 0(t0)
        ori     t1, t1, 0x10
        sd      t1, 0(t0)
        li      t0, 1 << 18
        csrs    sstatus, t0
        .endif
        la      t0, level0              # 0xffffffff80200000 is entry 1 of level 1
        pte     t0, TABLE
        la      t1, level1
        sd      t0, 8(t1)
        la      s1, level2
        pte     t1, TABLE               # and entry 510 of level 2
        li      t2, 510 * 8
        add     t2, s1, t2
        sd      t1, 0(t2)
        li      t0, DATA                # devices, where they are
        sd      t0, 0(s1)
        li      t0, 0x80000000          # to run on when paging is turned on
        pte     t0, CODE
        sd      t0, 16(s1)
        .if LEVELS >= 4                 # both ends of the tables above
        mv      t0, s1
        pte     t0, TABLE
        la      s1, level3
        sd      t0, 0(s1)
        li      t2, 511 * 8
        add     t2, s1, t2
        sd      t0, 0(t2)
        .endif
        .if LEVELS == 5
        mv      t0, s1
        pte     t0, TABLE
        la      s1, level4
        sd      t0, 0(s1)
        li      t2, ((BASE >> 48) & 511) * 8
        add     t2, s1, t2
        sd      t0, 0(t2)
        .endif
        la      t0, other               # the other root
        li      t1, 512
3:      ld      t2, 0(s1)
        sd      t2, 0(t0)
        addi    s1, s1, 8
        addi    t0, t0, 8
        addi    t1, t1, -1
        bnez    t1, 3b
        addi    t0, t0, -2048
        addi    t0, t0, -2048
        li      s3, (LEVELS + 5) << 60
        srli    s2, t0, 12
        or      s2, s2, s3              # satp of one
        addi    s1, s1, -2048
        addi    s1, s1, -2048
        srli    s1, s1, 12
        or      s1, s1, s3              # and of the other
        sfence.vma
        csrw    satp, s1
        sfence.vma
        la      t0, high
        li      t1, OFFSET
        add     t0, t0, t1
        jr      t0
high:
        la      sp, stack
        la      t0, level2
        .if LEVELS == 3                 # the boot mapping is in both roots then
        sd      zero, 16(t0)
        la      t0, other
        .endif
        sd      zero, 16(t0)
        sfence.vma
        .globl  settled
settled:
        li      s4, 1000
4:      csrw    satp, s2
        sfence.vma
        mv      t0, s1
        mv      s1, s2
        mv      s2, t0
        call    work
        call    outer
        addi    s4, s4, -1
        bnez    s4, 4b
        la      t0, counter
        ld      s5, 0(t0)
        call    print
        la      t0, counter
        ld      s5, 8(t0)
        call    print
        li      t0, 0x100000
        li      t1, 0x5555
        sw      t1, 0(t0)
6:      j       6b

print:  li      s6, 0x10000000          # s5 in four digits
        li      s7, 1000
5:      divu    t1, s5, s7
        remu    s5, s5, s7
        addi    t1, t1, '0'
        sb      t1, 0(s6)
        li      t2, 10
        divu    s7, s7, t2
        bnez    s7, 5b
        li      t1, '\n'
        sb      t1, 0(s6)
        ret

        .balign 8
        .globl  work
        .type   work, @function
work:   .cfi_startproc
        nop
        nop
        la      t0, counter
        ld      t1, 0(t0)
        addi    t1, t1, 1
        sd      t1, 0(t0)
        ret
        .cfi_endproc
        .size   work, . - work

        .globl  outer
        .type   outer, @function
outer:  .cfi_startproc
        nop                             # two, as compilers leave them for a patch: a jump may destroy t0
        nop
        addi    sp, sp, -16
        .cfi_def_cfa_offset 16
        sd      ra, 8(sp)
        .cfi_offset ra, -8
        li      a0, 1
        call    inner
        li      a0, 1
        call    inner
        ld      ra, 8(sp)
        .cfi_restore ra
        addi    sp, sp, 16
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   outer, . - outer

        .globl  inner
        .type   inner, @function
inner:  .cfi_startproc
        nop                             # calls itself a0 times, and the firmware at last
        nop
        addi    sp, sp, -16
        .cfi_def_cfa_offset 16
        sd      ra, 8(sp)
        .cfi_offset ra, -8
        la      t0, counter
        ld      t1, 8(t0)
        addi    t1, t1, 1
        sd      t1, 8(t0)
        beqz    a0, 8f
        addi    a0, a0, -1
        call    inner
7:      ld      ra, 8(sp)
        .cfi_restore ra
        addi    sp, sp, 16
        .cfi_def_cfa_offset 0
        ret
        .cfi_def_cfa_offset 16
        .cfi_offset ra, -8
8:      li      a7, 0x10                # sbi_get_spec_version
        li      a6, 0
        .globl  asks
asks:   ecall
        j       7b
        .cfi_endproc
        .size   inner, . - inner
        .balign 4096
        .ifdef  SCRATCH                 # as examples/rsptrace-scratch sets it aside
        .balign 4096
        .globl  __rsptrace_code
        .type   __rsptrace_code, @object
        .size   __rsptrace_code, 32768
__rsptrace_code:
        .zero   32768
        .endif
text_end:
        .data
        .balign 4096
counter: .dword 0, 0
        .bss
        .balign 4096
level0: .skip   4096
level1: .skip   4096
level2: .skip   4096
level3: .skip   4096
level4: .skip   4096
other:  .skip   4096
        .skip   4096
stack:
        .balign 4096
        .ifdef  SCRATCH
        .balign 4096
        .globl  __rsptrace_data
        .type   __rsptrace_data, @object
        .size   __rsptrace_data, 262144
__rsptrace_data:
        .zero   262144
        .endif
image_end:
