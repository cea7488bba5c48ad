/* What a compiler would tell of the three functions of harts-*.s: their arguments lie in the registers whose DWARF numbers are FIRST and SECOND. */
    .section .debug_abbrev, "", @progbits
    .byte 1, 0x11        /* compile_unit */
    .byte 1
    .byte 0x25, 0x08        /* producer, string */
    .byte 0x13, 0x0b        /* language, data1 */
    .byte 0x03, 0x08        /* name, string */
    .byte 0x11, 0x01        /* low_pc, addr */
    .byte 0x12, 0x07        /* high_pc, data8 */
    .byte 0, 0
    .byte 2, 0x24        /* base_type */
    .byte 0
    .byte 0x0b, 0x0b        /* byte_size, data1 */
    .byte 0x3e, 0x0b        /* encoding, data1 */
    .byte 0x03, 0x08
    .byte 0, 0
    .byte 3, 0x2e        /* subprogram */
    .byte 1
    .byte 0x03, 0x08
    .byte 0x3f, 0x19        /* external, flag_present */
    .byte 0x27, 0x19        /* prototyped */
    .byte 0x11, 0x01
    .byte 0x12, 0x07
    .byte 0x49, 0x13        /* type, ref4 */
    .byte 0, 0
    .byte 4, 0x05        /* formal_parameter */
    .byte 0
    .byte 0x03, 0x08
    .byte 0x49, 0x13
    .byte 0x02, 0x18        /* location, exprloc */
    .byte 0, 0
    .byte 0

    .macro described name
    .byte 3
    .asciz "\name"
    .quad \name
    .quad \name\()_end - \name
    .long number_type - unit
    .byte 4
    .asciz "call"
    .long number_type - unit
    .byte 1
    .byte 0x50 + FIRST        /* DW_OP_reg */
    .byte 4
    .asciz "hart"
    .long number_type - unit
    .byte 1
    .byte 0x50 + SECOND
    .byte 0
    .endm

    .section .debug_info, "", @progbits
unit:
    .long unit_end - unit - 4
    .short 4
    .long 0
    .byte 8
    .byte 1
    .asciz "by hand"
    .byte 0x0c
    .asciz "harts"
    .quad outer
    .quad tick_end - outer
number_type:
    .byte 2
    .byte 8, 7
    .asciz "unsigned long"
    described outer
    described inner
    described tick
    .byte 0
unit_end:
