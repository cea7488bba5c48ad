// Attribute values: DWARF 5, section 7.5.5 (classes) and 7.5.6 (forms). Each reader serves one class and returns
// undefined for a form of another class. A value outside its unit, or outside the section it points into, throws
// `DWARF_DAMAGED`.
//
// References into a supplementary file (ref_sup, strp_sup, GNU_ref_alt, GNU_strp_alt) are undefined: the file is not
// opened.
import { RsptraceError } from '../base/errors.js';
import { littleEndian } from '../base/little-endian.js';
import { asText, type CodeAddress, textAt } from '../elf/index.js';
import { DW_FORM } from './constants.js';
import { fixedSize, lebEnd, SKIP, u16At, u32At, ulebAt } from './form-sizes.js';
import type { Unit } from './unit.js';

/** Bytes of an offset into a section, and of an address. */
const OFFSET = 4;
const ADDRESS = 8;

/** A form and the place of its value in the unit's section; `implicit` is implicit_const's value. */
export interface Located {
  readonly form: number;
  readonly at: number;
  readonly implicit: bigint;
}

export function damaged(unit: Unit, at: number, what: string): RsptraceError {
  return new RsptraceError(
    'DWARF_DAMAGED',
    `${unit.header.section} is damaged at offset 0x${at.toString(16)}: ${what}`,
  );
}

function need(unit: Unit, at: number, size: number): void {
  if (at + size > unit.end - unit.base) throw damaged(unit, at, 'an attribute reaches past the end of its unit');
}

function fixed(unit: Unit, at: number, size: number): number {
  need(unit, at, size);
  const bytes = unit.bytes;
  switch (size) {
    case 1:
      return bytes[at] as number;
    case 2:
      return u16At(bytes, at);
    case 3:
      return u16At(bytes, at) | ((bytes[at + 2] as number) << 16);
    case 4:
      return u32At(bytes, at);
    default:
      return u32At(bytes, at) + u32At(bytes, at + 4) * 0x1_0000_0000;
  }
}

function uleb(unit: Unit, at: number): number {
  need(unit, at, lebEnd(unit.bytes, at) - at);
  return ulebAt(unit.bytes, at);
}

/** The classes of forms whose value is an unsigned number. */
const CLASS = { none: 0, number: 1, string: 2, address: 3, reference: 4 } as const;
const CLASSES = new Uint8Array(0x2000);
for (const [meaning, names] of [
  [CLASS.number, ['data1', 'data2', 'data4', 'data8', 'flag', 'sec_offset', 'udata', 'loclistx', 'rnglistx']],
  [CLASS.string, ['strx', 'strx1', 'strx2', 'strx3', 'strx4', 'GNU_str_index']],
  [CLASS.address, ['addrx', 'addrx1', 'addrx2', 'addrx3', 'addrx4', 'GNU_addr_index']],
  [CLASS.reference, ['ref1', 'ref2', 'ref4', 'ref8', 'ref_udata']],
] as const)
  for (const name of names) CLASSES[DW_FORM[name]] = meaning;

function classOf(form: number): number {
  return CLASSES[form] ?? CLASS.none;
}

/** The value of a form of one of these classes. */
function unsigned(unit: Unit, { form, at }: Located): number {
  const size = fixedSize(form, unit.version);
  return size === SKIP.leb ? uleb(unit, at) : fixed(unit, at, size);
}

/**
 * Constants, section offsets and list indices as a number; beyond 2^53 they lose precision, so use {@link readBig}
 * for values.
 */
export function readNumber(unit: Unit, v: Located): number | undefined {
  if (classOf(v.form) === CLASS.number) return unsigned(unit, v);
  return v.form === DW_FORM.sdata || v.form === DW_FORM.implicit_const ? Number(readBig(unit, v)) : undefined;
}

/** Constants, exact; sdata and implicit_const are signed, the rest unsigned; data16 and blocks have up to 128 bits. */
export function readBig(unit: Unit, v: Located): bigint | undefined {
  switch (v.form) {
    case DW_FORM.implicit_const:
      return v.implicit;
    case DW_FORM.data8:
      return BigInt(fixed(unit, v.at, 4)) | (BigInt(fixed(unit, v.at + 4, 4)) << 32n);
    case DW_FORM.data16: {
      let value = 0n;
      for (let i = 12; i >= 0; i -= 4) value = (value << 32n) | BigInt(fixed(unit, v.at + i, 4));
      return value;
    }
    case DW_FORM.udata:
    case DW_FORM.sdata: {
      const end = lebEnd(unit.bytes, v.at);
      need(unit, v.at, end - v.at);
      if (end - v.at > 19) throw damaged(unit, v.at, 'a LEB128 number of more than 128 bits');
      let value = 0n;
      for (let i = end - 1; i >= v.at; i--) value = (value << 7n) | BigInt((unit.bytes[i] as number) & 0x7f);
      return v.form === DW_FORM.sdata ? BigInt.asIntN((end - v.at) * 7, value) : value;
    }
    default: {
      const value = readNumber(unit, v);
      if (value !== undefined) return BigInt(value);
      // rustc writes 128-bit discriminants as blocks.
      const block = readBlock(unit, v);
      return block === undefined || block.length > 16 ? undefined : littleEndian(block);
    }
  }
}

export function readString(unit: Unit, v: Located): string | undefined {
  if (v.form === DW_FORM.string) {
    const own = unit.bytes.subarray(0, unit.end - unit.base);
    const found = textAt(asText(own), v.at, unit.budget, unit.header.section);
    if (found === undefined) throw damaged(unit, v.at, 'a string without an end');
    return found;
  }
  const offset = stringOffset(unit, v);
  if (offset === undefined) return undefined;
  const section = v.form === DW_FORM.line_strp ? '.debug_line_str' : '.debug_str';
  const found = unit.sections.stringAt(section, offset);
  if (found === undefined) throw damaged(unit, v.at, `0x${offset.toString(16)} is no string in ${section}`);
  return found;
}

/** The place of a string in its section (.debug_line_str for line_strp, else .debug_str); undefined for other forms. */
export function stringOffset(unit: Unit, v: Located): number | undefined {
  if (v.form === DW_FORM.strp || v.form === DW_FORM.line_strp) return fixed(unit, v.at, OFFSET);
  if (classOf(v.form) !== CLASS.string) return undefined;
  const index = unsigned(unit, v);
  const table = unit.sections.get('.debug_str_offsets');
  const at = unit.bases.str + index * OFFSET;
  if (!(at + OFFSET <= table.length)) throw damaged(unit, v.at, `string ${index} is outside .debug_str_offsets`);
  return u32At(table, at);
}

/** Addresses, direct or through .debug_addr. */
export function readCode(unit: Unit, v: Located): CodeAddress | undefined {
  if (v.form !== DW_FORM.addr)
    return classOf(v.form) === CLASS.address ? indexedAddress(unit, unsigned(unit, v)) : undefined;
  need(unit, v.at, ADDRESS);
  return codeAt(unit, unit.bytes, v.at);
}

/** Entry `index` of the unit's part of .debug_addr (DWARF 5, section 7.27). */
export function indexedAddress(unit: Unit, index: number): CodeAddress {
  const table = unit.sections.get('.debug_addr');
  const at = indexedAt(unit, index, table);
  return codeAt(unit, table, at);
}

function codeAt(unit: Unit, bytes: Uint8Array, at: number): CodeAddress {
  return unit.codes.ofFile(u32At(bytes, at), u32At(bytes, at + 4));
}

/** The same as the exact number: DW_OP.constx keeps any constant there. */
export function indexedWord(unit: Unit, index: number): bigint {
  const table = unit.sections.get('.debug_addr');
  const at = indexedAt(unit, index, table);
  return littleEndian(table, at, ADDRESS);
}

function indexedAt(unit: Unit, index: number, table: Uint8Array): number {
  const at = unit.bases.addr + index * ADDRESS;
  if (!(at + ADDRESS <= table.length)) {
    throw damaged(unit, unit.offset - unit.base, `address ${index} is outside .debug_addr`);
  }
  return at;
}

/** The offset of the DIE referred to; a type signature is looked up among the type units. */
export function readReference(unit: Unit, v: Located): number | undefined {
  if (v.form === DW_FORM.ref_addr) return unit.home.info + fixed(unit, v.at, fixedSize(v.form, unit.version));
  if (v.form === DW_FORM.ref_sig8) {
    need(unit, v.at, 8);
    const signature = littleEndian(unit.bytes, v.at, 8).toString(16).padStart(16, '0');
    return unit.debug.typeUnit(signature)?.header.typeOffset;
  }
  if (classOf(v.form) !== CLASS.reference) return undefined;
  const local = unsigned(unit, v);
  const target = unit.offset + local;
  if (target < unit.header.firstDie || target >= unit.end) {
    throw damaged(unit, v.at, `it refers to 0x${local.toString(16)}, outside its unit`);
  }
  return target;
}

export function readFlag(unit: Unit, v: Located): boolean {
  return v.form === DW_FORM.flag_present || (v.form === DW_FORM.flag && fixed(unit, v.at, 1) !== 0);
}

/** How many bytes say the size of a block; 0: it is a LEB128 number. */
const BLOCK_HEADS: ReadonlyMap<number, number> = new Map([
  [DW_FORM.block1, 1],
  [DW_FORM.block2, 2],
  [DW_FORM.block4, 4],
  [DW_FORM.block, 0],
  [DW_FORM.exprloc, 0],
]);

/** Blocks and expressions, as a view. */
export function readBlock(unit: Unit, { form, at }: Located): Uint8Array | undefined {
  const head = BLOCK_HEADS.get(form);
  if (head === undefined && form !== DW_FORM.data16) return undefined;
  let size = 16;
  let start = at;
  if (head !== undefined) {
    size = head === 0 ? uleb(unit, at) : fixed(unit, at, head);
    start = head === 0 ? lebEnd(unit.bytes, at) : at + head;
  }
  need(unit, start, size);
  return unit.bytes.subarray(start, start + size);
}

/** True for the forms in which DW_AT.high_pc is a length rather than an address. */
export function isConstantForm(form: number): boolean {
  return CONSTANTS.has(form);
}

const CONSTANTS: ReadonlySet<number> = new Set(
  (['data1', 'data2', 'data4', 'data8', 'udata', 'sdata', 'implicit_const'] as const).map((name) => DW_FORM[name]),
);
