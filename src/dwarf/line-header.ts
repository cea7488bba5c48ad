// Headers of line number programs, versions 2 to 5: DWARF 5, section 6.2.4; DWARF 4, section 6.2.4.
//
//   unit_length | version (2) | [5: address_size (1) | segment_selector_size (1)] | header_length
//   | minimum_instruction_length (1) | [4, 5: maximum_operations_per_instruction (1)] | default_is_stmt (1)
//   | line_base (1, signed) | line_range (1) | opcode_base (1) | standard_opcode_lengths (opcode_base - 1)
//   | directories | files
//
// Version 5 describes directories and files by content type and form; before, they are zero-terminated strings.
// Source text embedded by clang (DW_LNCT_LLVM_source), sizes, times and MD5 sums are passed over.
import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import type { SectionSource } from '../elf/index.js';
import { DW_FORM } from './constants.js';
import { fixedSize, SKIP, skipStep } from './form-sizes.js';

interface LineFile {
  readonly name: string;
  readonly directory: number;
}

export interface LineHeader {
  readonly offset: number;
  readonly version: number;
  readonly minInstruction: number;
  readonly defaultIsStmt: boolean;
  readonly lineBase: number;
  readonly lineRange: number;
  readonly opcodeBase: number;
  readonly opcodeLengths: readonly number[];
  /**
   * As written; in version 5 entry 0 is the unit's own directory, before it the compilation directory is meant by 0.
   */
  readonly directories: readonly string[];
  /**
   * By the index that the program and DW_AT.decl_file use: from 0 in version 5, from 1 before (entry 0 is empty
   * then).
   */
  readonly files: readonly (LineFile | undefined)[];
  /** Where the program begins and ends in .debug_line. */
  readonly program: number;
  readonly end: number;
}

/** Memory that one byte of a header takes in lists of names: two bytes may be an entry. */
const BYTES_IN_TABLES = 24;

/** Reads the header at an offset of .debug_line. Throws `DWARF_VERSION`, `INPUT_DAMAGED` or `ELF_TOO_COSTLY`. */
export function readLineHeader(sections: SectionSource, offset: number): LineHeader {
  const { bytes, need } = sections.inPart('.debug_line');
  need(offset, offset + 12);
  let r = new ByteReader(bytes, '.debug_line', Math.min(offset, bytes.length));
  const length = r.u32();
  if (length > r.remaining) throw r.truncated(`a line table of 0x${length.toString(16)} bytes`);
  const end = r.offset + length;
  need(offset, end);
  r = r.at(r.offset, end);
  const version = r.u16();
  if (version < 2 || version > 5) {
    throw new RsptraceError(
      'DWARF_VERSION',
      `the line table at offset 0x${offset.toString(16)} has version ${version}`,
    );
  }
  if (version >= 5) r.skip(2);
  const headerLength = r.u32();
  if (headerLength > r.remaining) throw r.truncated('a line table header');
  const program = r.offset + headerLength;
  // Headers of a damaged file may overlap many times over.
  sections.budget.spend(headerLength, '.debug_line');
  sections.budget.hold(headerLength * BYTES_IN_TABLES, '.debug_line');
  const minInstruction = r.u8();
  // Operations of one instruction: 1 but for VLIW machines.
  if (version >= 4) r.skip(1);
  const defaultIsStmt = r.u8() !== 0;
  const lineBase = r.i8();
  const lineRange = r.u8();
  const opcodeBase = r.u8();
  const opcodeLengths = [0];
  for (let i = 1; i < opcodeBase; i++) opcodeLengths.push(r.u8());
  const rest = r.at(r.offset, program);
  const tables = version >= 5 ? readTables(rest, sections) : readOldTables(rest);
  return {
    offset,
    version,
    minInstruction,
    defaultIsStmt,
    lineBase,
    lineRange,
    opcodeBase,
    opcodeLengths,
    ...tables,
    program,
    end,
  };
}

interface Tables {
  readonly directories: string[];
  readonly files: (LineFile | undefined)[];
}

function readOldTables(r: ByteReader): Tables {
  const directories = [''];
  for (let name = r.cstr(); name !== ''; name = r.cstr()) directories.push(name);
  const files: (LineFile | undefined)[] = [undefined];
  for (let name = r.cstr(); name !== ''; name = r.cstr()) {
    files.push({ name, directory: r.uleb() });
    r.uleb();
    r.uleb();
  }
  return { directories, files };
}

function readTables(r: ByteReader, sections: SectionSource): Tables {
  const directories = readEntries(r, sections).map((e) => e.name);
  return { directories, files: readEntries(r, sections) };
}

// format count (1) | { content type (uleb) | form (uleb) }* | entry count (uleb) | entries
function readEntries(r: ByteReader, sections: SectionSource): LineFile[] {
  const format = Array.from({ length: r.u8() }, () => ({ content: r.uleb(), form: r.uleb() }));
  const count = r.uleb();
  const entries: LineFile[] = [];
  // An entry of no bytes would let a count of 2^53 loop: each takes at least one byte.
  if (count > r.remaining) throw r.truncated(`${count} entries`);
  sections.budget.spend(count * format.length, '.debug_line');
  for (let i = 0; i < count; i++) {
    let name = '';
    let directory = 0;
    for (const { content, form } of format) {
      if (content === DW_LNCT.path) name = readPath(r, sections, form);
      else if (content === DW_LNCT.directory_index) directory = readSmall(r, form);
      else skipForm(r, form);
    }
    entries.push({ name, directory });
  }
  return entries;
}

function readPath(r: ByteReader, sections: SectionSource, form: number): string {
  if (form === DW_FORM.string) return r.cstr();
  const section = form === DW_FORM.line_strp ? '.debug_line_str' : form === DW_FORM.strp ? '.debug_str' : undefined;
  if (section === undefined) {
    skipForm(r, form);
    return '';
  }
  return sections.stringAt(section, r.u32()) ?? '';
}

function readSmall(r: ByteReader, form: number): number {
  if (form === DW_FORM.udata) return r.uleb();
  if (form === DW_FORM.data1) return r.u8();
  if (form === DW_FORM.data2) return r.u16();
  throw new RsptraceError('DWARF_VERSION', `a directory index of form 0x${form.toString(16)} in .debug_line`);
}

function skipForm(r: ByteReader, form: number): void {
  const size = fixedSize(form, 5);
  if (size === SKIP.unknown)
    throw new RsptraceError('DWARF_VERSION', `an entry of form 0x${form.toString(16)} in .debug_line`);
  r.skip(size >= 0 ? size : skipStep(r.bytes, r.offset, size) - r.offset);
}

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
const DW_LNCT = {
  path: 1,
  directory_index: 2,
} as const;
