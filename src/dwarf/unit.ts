// Unit headers of .debug_info (DWARF 2-5) and .debug_types (DWARF 4): DWARF 5, section 7.5.1; DWARF 4, section 7.5.1.
//
//   2-4: unit_length (4) | version (2) | abbrev_offset (4) | address_size (1) [| type_signature (8) | type_offset (4)]
//   5:   unit_length (4) | version (2) | unit_type (1) | address_size (1) | abbrev_offset (4)
//        [| dwo_id (8) or as above]
//
// Offsets of DIEs are numbers in one space: .debug_info from 0, .debug_types right behind it. Refused, with a
// warning: other versions, 64-bit DWARF, other address sizes than 8. The next units are used if the length still says
// where they begin.
import type { Budget } from '../base/budget.js';
import { ByteReader } from '../base/byte-reader.js';
import { isDamage, RsptraceError } from '../base/errors.js';
import type { BytesInPart, CodeAddress, CodeSpace, SectionSource } from '../elf/index.js';
import type { AbbrevCache, AbbrevTable } from './abbrev.js';
import { DW_AT, DW_LANG, DW_UT } from './constants.js';
import type { DebugInfo } from './debug-info.js';
import { Die } from './die.js';

export interface UnitHeader {
  readonly version: number;
  /** Where the unit's header begins, in the one space of DIE offsets. */
  readonly offset: number;
  readonly end: number;
  /** Where its first DIE begins. */
  readonly firstDie: number;
  /** The difference from a DIE's offset to its offset inside the section. */
  readonly base: number;
  readonly part: BytesInPart;
  readonly section: string;
  readonly type: number;
  readonly abbrevOffset: number;
  /** Of skeletons of DWARF 5 and what they stand for: 16 hex digits. */
  readonly dwoId: string | undefined;
  /** Of type units: the signature as 16 hex digits, and the offset of the type's DIE. */
  readonly signature: string | undefined;
  readonly typeOffset: number;
}

/** Bytes of the longest: a length, and what is behind it. */
const LONGEST_HEADER = 4 + 36;

/** The units of one section, in order. Unusable ones are reported to `warn` and left out. */
export function readUnitHeaders(
  part: BytesInPart,
  section: string,
  base: number,
  warn: (message: string) => void,
): UnitHeader[] {
  const found: UnitHeader[] = [];
  const { bytes } = part;
  const r = new ByteReader(bytes, section);
  while (r.remaining > 0) {
    const start = r.offset;
    part.need(start, start + LONGEST_HEADER);
    let end: number;
    try {
      const length = r.u32();
      if (length === 0xffff_ffff) throw new RsptraceError('DWARF_VERSION', 'it is 64-bit DWARF');
      end = r.offset + length;
      if (end > bytes.length || length === 0) throw r.truncated(`a unit of 0x${length.toString(16)} bytes`);
    } catch (error) {
      if (!isDamage(error)) throw error;
      warn(`${section}: the unit at offset 0x${start.toString(16)} has no usable length (${error.message})`);
      break;
    }
    try {
      found.push(readHeader(r.at(r.offset, end), start, { base, part, section }));
    } catch (error) {
      if (!isDamage(error)) throw error;
      warn(`${section}: the unit at offset 0x${start.toString(16)} was skipped: ${error.message}`);
    }
    r.offset = end;
  }
  return found;
}

function readHeader(
  r: ByteReader,
  start: number,
  { base, part, section }: Pick<UnitHeader, 'base' | 'part' | 'section'>,
): UnitHeader {
  const version = r.u16();
  if (version < 2 || version > 5) {
    throw new RsptraceError('DWARF_VERSION', `DWARF version ${version} is not one of 2 to 5`);
  }
  let type: number = section.startsWith('.debug_types') ? DW_UT.type : DW_UT.compile;
  if (version >= 5) type = r.u8();
  let addressSize = version >= 5 ? r.u8() : 0;
  const abbrevOffset = r.u32();
  if (version < 5) addressSize = r.u8();
  if (addressSize !== 8) {
    throw new RsptraceError('DWARF_DAMAGED', `addresses of ${addressSize} bytes are not served`);
  }
  let signature: string | undefined;
  let typeOffset = -1;
  if (type === DW_UT.type || type === DW_UT.split_type) {
    signature = r.u64().toString(16).padStart(16, '0');
    typeOffset = base + start + r.u32();
  }
  const split = version >= 5 && (type === DW_UT.skeleton || type === DW_UT.split_compile);
  const dwoId = split ? r.u64().toString(16).padStart(16, '0') : undefined;
  return {
    offset: base + start,
    end: base + r.end,
    firstDie: base + r.offset,
    base,
    part,
    section,
    version,
    type,
    abbrevOffset,
    dwoId,
    signature,
    typeOffset,
  };
}

const FLAT: ReadonlySet<number> = new Set([
  DW_LANG.C,
  DW_LANG.C89,
  DW_LANG.C99,
  DW_LANG.C11,
  DW_LANG.C17,
  DW_LANG.Mips_Assembler,
]);

/** Where a unit's header leads. */
interface UnitHome {
  readonly abbrevs: AbbrevCache;
  readonly sections: SectionSource;
  /** The DIE offset from which DW_FORM.ref_addr counts. */
  readonly info: number;
}

/** One unit: its header, and what is read on first use, its abbreviations and its root's attributes. */
export class Unit {
  readonly debug: DebugInfo;
  readonly header: UnitHeader;
  readonly home: UnitHome;
  /** Of split DWARF: the unit in the linked file, which has what a linker must know. */
  skeleton: Unit | undefined;
  readonly codes: CodeSpace;
  readonly budget: Budget;
  #table: AbbrevTable | undefined;
  #bytes: Uint8Array | undefined;
  #root: Die | undefined;
  #bases: { str: number; addr: number; rnglists: number; loclists: number } | undefined;

  constructor(debug: DebugInfo, header: UnitHeader, home: UnitHome) {
    this.debug = debug;
    this.header = header;
    this.home = home;
    this.codes = debug.elf.codes;
    this.budget = debug.elf.budget;
  }

  get version(): number {
    return this.header.version;
  }

  get offset(): number {
    return this.header.offset;
  }

  get end(): number {
    return this.header.end;
  }

  get base(): number {
    return this.header.base;
  }

  /** Of its section; the unit's own were read. */
  get bytes(): Uint8Array {
    this.#bytes ??= this.#read();
    return this.#bytes;
  }

  #read(): Uint8Array {
    const { part, base, offset, end } = this.header;
    part.need(offset - base, end - base);
    return part.bytes;
  }

  get sections(): SectionSource {
    return this.home.sections;
  }

  get abbrevs(): AbbrevTable {
    this.#table ??= this.home.abbrevs.get(this.header.abbrevOffset, this.version);
    return this.#table;
  }

  /** The unit's first DIE. */
  get root(): Die {
    this.#root ??= Die.at(this, this.header.firstDie);
    return this.#root;
  }

  get name(): string | undefined {
    return this.root.string(DW_AT.name);
  }

  get compDir(): string | undefined {
    return this.root.string(DW_AT.comp_dir) ?? this.skeleton?.compDir;
  }

  /** What addresses in lists of ranges and locations are relative to at first; NO_ADDRESS if nothing says it. */
  get lowPc(): CodeAddress {
    return (this.skeleton ?? this).root.lowPc;
  }

  /** DW_LANG of the unit; undefined if the unit does not say. */
  get language(): number | undefined {
    return this.root.number(DW_AT.language);
  }

  /** Whether the language has no nested names, so that everything named is a direct child of the root. */
  get isFlat(): boolean {
    return FLAT.has(this.language ?? -1);
  }

  /** Offset of the line table in .debug_line, or undefined. */
  get stmtList(): number | undefined {
    return this.root.number(DW_AT.stmt_list);
  }

  /**
   * Where the unit's tables begin in .debug_str_offsets, .debug_addr, .debug_rnglists and .debug_loclists. Without
   * the attribute: where the first table of the section begins, behind its header (DWARF 5, section 7.26 to 7.29), or
   * 0 in DWARF 4.
   */
  get bases(): { str: number; addr: number; rnglists: number; loclists: number } {
    if (this.#bases !== undefined) return this.#bases;
    const five = this.version >= 5;
    const read = (attribute: number, other: number): number => this.root.number(attribute) ?? other;
    this.#bases = {
      str: read(DW_AT.str_offsets_base, five ? 8 : 0),
      addr: this.skeleton?.bases.addr ?? read(DW_AT.addr_base, read(DW_AT.GNU_addr_base, five ? 8 : 0)),
      rnglists: read(DW_AT.rnglists_base, 12),
      loclists: read(DW_AT.loclists_base, 12),
    };
    return this.#bases;
  }
}
