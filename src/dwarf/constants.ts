// The names and numbers of DWARF 5, spelled as in the specification (section 7.5.3 tags, 7.5.4 attributes, 7.5.5 and
// 7.5.6 forms, 7.5.1 unit types). The GNU extensions that gcc and clang emit in DWARF 4 are included. Numbers that no
// code reads by name are left out, because an unknown tag or attribute is skipped by its form and never refused.
// Opcodes of expressions are in op-codes.ts.

/** DWARF 5, table 7.3. */
export const DW_TAG = {
  array_type: 0x01,
  class_type: 0x02,
  enumeration_type: 0x04,
  formal_parameter: 0x05,
  lexical_block: 0x0b,
  member: 0x0d,
  pointer_type: 0x0f,
  reference_type: 0x10,
  compile_unit: 0x11,
  structure_type: 0x13,
  subroutine_type: 0x15,
  typedef: 0x16,
  union_type: 0x17,
  unspecified_parameters: 0x18,
  variant: 0x19,
  inlined_subroutine: 0x1d,
  module: 0x1e,
  subrange_type: 0x21,
  base_type: 0x24,
  const_type: 0x26,
  enumerator: 0x28,
  subprogram: 0x2e,
  template_type_parameter: 0x2f,
  variant_part: 0x33,
  variable: 0x34,
  volatile_type: 0x35,
  restrict_type: 0x37,
  namespace: 0x39,
  unspecified_type: 0x3b,
  partial_unit: 0x3c,
  type_unit: 0x41,
  rvalue_reference_type: 0x42,
  template_alias: 0x43,
  atomic_type: 0x47,
  skeleton_unit: 0x4a,
  immutable_type: 0x4b,
  /** Of gcc. */
  GNU_formal_parameter_pack: 0x4108,
} as const;

/** The numbers of some tags. */
export function tags(...names: readonly (keyof typeof DW_TAG)[]): ReadonlySet<number> {
  return new Set(names.map((name) => DW_TAG[name]));
}

/** DWARF 5, table 7.5. */
export const DW_AT = {
  sibling: 0x01,
  location: 0x02,
  name: 0x03,
  byte_size: 0x0b,
  bit_offset: 0x0c,
  bit_size: 0x0d,
  stmt_list: 0x10,
  low_pc: 0x11,
  high_pc: 0x12,
  language: 0x13,
  discr: 0x15,
  discr_value: 0x16,
  comp_dir: 0x1b,
  const_value: 0x1c,
  containing_type: 0x1d,
  lower_bound: 0x22,
  producer: 0x25,
  upper_bound: 0x2f,
  abstract_origin: 0x31,
  calling_convention: 0x36,
  count: 0x37,
  data_member_location: 0x38,
  decl_file: 0x3a,
  decl_line: 0x3b,
  declaration: 0x3c,
  discr_list: 0x3d,
  encoding: 0x3e,
  frame_base: 0x40,
  specification: 0x47,
  type: 0x49,
  entry_pc: 0x52,
  ranges: 0x55,
  call_column: 0x57,
  call_file: 0x58,
  call_line: 0x59,
  signature: 0x69,
  data_bit_offset: 0x6b,
  linkage_name: 0x6e,
  str_offsets_base: 0x72,
  addr_base: 0x73,
  rnglists_base: 0x74,
  dwo_name: 0x76,
  noreturn: 0x87,
  alignment: 0x88,
  loclists_base: 0x8c,
  MIPS_linkage_name: 0x2007,
  GNU_dwo_name: 0x2130,
  GNU_dwo_id: 0x2131,
  GNU_ranges_base: 0x2132,
  GNU_addr_base: 0x2133,
} as const;

/** DWARF 5, table 7.6. */
export const DW_FORM = {
  addr: 0x01,
  block2: 0x03,
  block4: 0x04,
  data2: 0x05,
  data4: 0x06,
  data8: 0x07,
  string: 0x08,
  block: 0x09,
  block1: 0x0a,
  data1: 0x0b,
  flag: 0x0c,
  sdata: 0x0d,
  strp: 0x0e,
  udata: 0x0f,
  ref_addr: 0x10,
  ref1: 0x11,
  ref2: 0x12,
  ref4: 0x13,
  ref8: 0x14,
  ref_udata: 0x15,
  sec_offset: 0x17,
  exprloc: 0x18,
  flag_present: 0x19,
  strx: 0x1a,
  addrx: 0x1b,
  ref_sup4: 0x1c,
  strp_sup: 0x1d,
  data16: 0x1e,
  line_strp: 0x1f,
  ref_sig8: 0x20,
  implicit_const: 0x21,
  loclistx: 0x22,
  rnglistx: 0x23,
  ref_sup8: 0x24,
  strx1: 0x25,
  strx2: 0x26,
  strx3: 0x27,
  strx4: 0x28,
  addrx1: 0x29,
  addrx2: 0x2a,
  addrx3: 0x2b,
  addrx4: 0x2c,
  GNU_addr_index: 0x1f01,
  GNU_str_index: 0x1f02,
  GNU_ref_alt: 0x1f20,
  GNU_strp_alt: 0x1f21,
} as const;

/** Unit types: DWARF 5, table 7.2. */
export const DW_UT = {
  compile: 0x01,
  type: 0x02,
  skeleton: 0x04,
  split_compile: 0x05,
  split_type: 0x06,
} as const;

/** DWARF 5, table 7.17: the ones that are told apart. */
export const DW_LANG = {
  C89: 0x01,
  C: 0x02,
  C99: 0x0c,
  Rust: 0x1c,
  C11: 0x1d,
  C17: 0x2c,
  Mips_Assembler: 0x8001,
  Rust_old: 0x9000,
} as const;

/** Base type encodings: DWARF 5, table 7.11. */
export const DW_ATE = {
  address: 0x01,
  boolean: 0x02,
  float: 0x04,
  signed: 0x05,
  signed_char: 0x06,
  unsigned: 0x07,
  unsigned_char: 0x08,
  UTF: 0x10,
} as const;

/** Discriminant list entries: DWARF 5, table 7.22. */
export const DW_DSC = {
  range: 1,
} as const;
