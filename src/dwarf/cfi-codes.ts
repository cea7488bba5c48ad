// Instructions of call frame programs: DWARF 5, table 7.29, and the GNU and AArch64 extensions that binutils knows.

/** `advance_loc`, `offset` and `restore` are the upper two bits; their operand is the lower six. */
export const DW_CFA = {
  advance_loc: 0x40,
  offset: 0x80,
  restore: 0xc0,
  nop: 0x00,
  set_loc: 0x01,
  advance_loc1: 0x02,
  advance_loc2: 0x03,
  advance_loc4: 0x04,
  offset_extended: 0x05,
  restore_extended: 0x06,
  undefined: 0x07,
  same_value: 0x08,
  register: 0x09,
  remember_state: 0x0a,
  restore_state: 0x0b,
  def_cfa: 0x0c,
  def_cfa_register: 0x0d,
  def_cfa_offset: 0x0e,
  def_cfa_expression: 0x0f,
  expression: 0x10,
  offset_extended_sf: 0x11,
  def_cfa_sf: 0x12,
  def_cfa_offset_sf: 0x13,
  val_offset: 0x14,
  val_offset_sf: 0x15,
  val_expression: 0x16,
  advance_loc8: 0x1d,
  // Of AArch64.
  negate_ra_state_with_pc: 0x2c,
  negate_ra_state: 0x2d,
  GNU_args_size: 0x2e,
  GNU_negative_offset_extended: 0x2f,
} as const;

/**
 * Pointer encodings of .eh_frame that compilers of 64-bit programs write: LSB core specification, "DWARF Extensions",
 * tables 10-2 and 10-3.
 */
export const DW_EH_PE = {
  absptr: 0x00,
  uleb128: 0x01,
  udata4: 0x03,
  udata8: 0x04,
  sdata4: 0x0b,
  sdata8: 0x0c,
  pcrel: 0x10,
  omit: 0xff,
} as const;
