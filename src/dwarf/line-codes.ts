// Numbers of the line number program: DWARF 5, section 7.22.

/** Standard line number opcodes. */
export const DW_LNS = {
  copy: 1,
  advance_pc: 2,
  advance_line: 3,
  set_file: 4,
  set_column: 5,
  negate_stmt: 6,
  set_basic_block: 7,
  const_add_pc: 8,
  fixed_advance_pc: 9,
  set_prologue_end: 10,
  set_epilogue_begin: 11,
  set_isa: 12,
} as const;

/** Extended line number opcodes. */
export const DW_LNE = {
  end_sequence: 1,
  set_address: 2,
} as const;

/** What a directory or file entry holds. */
export const DW_LNCT = {
  path: 1,
  directory_index: 2,
} as const;
