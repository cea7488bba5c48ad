// .debug_names: DWARF 5, section 6.1.1. One or more indexes, each for the units that it lists:
//
//   unit_length | version 5 (2) | padding (2) | comp_unit_count | local_type_unit_count | foreign_type_unit_count
//   | bucket_count | name_count | abbrev_table_size | augmentation_string_size (4 each) | augmentation string
//   | unit offsets | type unit offsets | foreign signatures (8 each)
//   | buckets (4 each) | hashes (4 each, where there are buckets) | string offsets | entry offsets
//   | abbreviations | entry pool
//
// Its own hash table is not used. Its entries go into rsptrace's index, so that one lookup serves units with and
// without .debug_names. Left out are entries of foreign type units (in .dwo files). Also left out is an index that is
// damaged anywhere or does not say where its entries are (gdb's). Its units are then scanned.
import { ByteReader } from '../base/byte-reader.js';
import { isDamage, messageOf, RsptraceError } from '../base/errors.js';
import { DW_AT, DW_FORM, DW_TAG, DW_UT } from './constants.js';
import type { DebugInfo } from './debug-info.js';
import { Die } from './die.js';
import { fixedSize, SKIP } from './form-sizes.js';
import { hashName, KIND, kindOf, type NameSink } from './name-scan.js';
import type { Unit } from './unit.js';

const DW_IDX = { compile_unit: 1, type_unit: 2, die_offset: 3 } as const;

/** In lists of numbers. */
const BYTES_OF_ENTRY = 32;

interface Abbreviation {
  readonly tag: number;
  readonly attributes: readonly { readonly index: number; readonly form: number }[];
}

/** Adds the entries of all usable indexes to `sink`; returns the units that they cover. */
export function readDebugNames(debug: DebugInfo, sink: NameSink): Set<Unit> {
  const covered = new Set<Unit>();
  const bytes = debug.sections.get('.debug_names');
  const r = new ByteReader(bytes, '.debug_names');
  while (r.remaining > 0) {
    const start = r.offset;
    try {
      let length = r.u32();
      const wide = length === 0xffff_ffff;
      if (wide) length = r.u64n();
      if (length > r.remaining) throw r.truncated(`an index of 0x${length.toString(16)} bytes`);
      const index = r.at(r.offset, r.offset + length);
      r.offset = index.end;
      const found = readIndex(debug, index, wide ? 8 : 4, covered);
      for (const unit of found.units) covered.add(unit);
      for (let i = 0; i < found.offsets.length; i++) {
        sink.add(found.hashes[i] as number, found.offsets[i] as number, found.kinds[i] as number);
      }
    } catch (error) {
      if (!isDamage(error)) throw error;
      debug.warn(`.debug_names: the index at offset 0x${start.toString(16)} is not used: ${messageOf(error)}`);
      if (r.offset <= start + 12) break;
    }
  }
  return covered;
}

interface Found {
  readonly units: readonly Unit[];
  readonly hashes: readonly number[];
  readonly offsets: readonly number[];
  readonly kinds: readonly number[];
}

/** The tables of one index. */
interface Tables {
  readonly units: readonly Unit[];
  readonly types: readonly Unit[];
  readonly nameCount: number;
  /** Reads the next word of 4 or 8 bytes. */
  readonly word: (at: ByteReader) => number;
  readonly strings: ByteReader;
  readonly entries: ByteReader;
  readonly abbreviations: ReadonlyMap<number, Abbreviation>;
  readonly pool: ByteReader;
}

function readTables(debug: DebugInfo, r: ByteReader, offsetSize: number, covered: ReadonlySet<Unit>): Tables {
  const version = r.u16();
  if (version !== 5) throw new RsptraceError('DWARF_VERSION', `its version is ${version}`);
  r.skip(2);
  const [unitCount, typeCount, foreignCount, bucketCount, nameCount, abbrevSize, textSize] = [
    r.u32(),
    r.u32(),
    r.u32(),
    r.u32(),
    r.u32(),
    r.u32(),
    r.u32(),
  ];
  r.skip(Math.min(r.remaining, (textSize + 3) & ~3));
  const word = (at: ByteReader): number => (offsetSize === 8 ? at.u64n() : at.u32());
  // Every table's place is known before any of them is read, so a count is never larger than the section allows.
  const table = (count: number, size: number): ByteReader => {
    const at = r.offset;
    r.skip(count * size);
    return r.at(at, r.offset);
  };
  const unitTable = table(unitCount, offsetSize);
  const typeTable = table(typeCount, offsetSize);
  table(foreignCount, 8);
  table(bucketCount, 4);
  if (bucketCount > 0) table(nameCount, 4);
  const strings = table(nameCount, offsetSize);
  const entries = table(nameCount, offsetSize);
  const abbreviations = readAbbreviations(table(abbrevSize, 1));
  const pool = r.at(r.offset);

  const unitAt = (offset: number): Unit => {
    const unit = debug.unitBeginningAt(offset);
    if (unit === undefined || covered.has(unit)) {
      throw new RsptraceError('DWARF_DAMAGED', `no unit, or one of another index, begins at 0x${offset.toString(16)}`);
    }
    return unit;
  };
  const units = Array.from({ length: unitCount }, () => unitAt(word(unitTable)));
  const types = Array.from({ length: typeCount }, () => unitAt(word(typeTable)));
  return { units, types, nameCount, word, strings, entries, abbreviations, pool };
}

function readIndex(debug: DebugInfo, r: ByteReader, offsetSize: number, covered: ReadonlySet<Unit>): Found {
  const tables = readTables(debug, r, offsetSize, covered);
  const { units, types, nameCount, word, strings, entries, abbreviations, pool } = tables;
  const found = { units: [...units, ...types], hashes: [] as number[], offsets: [] as number[], kinds: [] as number[] };
  const text = debug.sections.get('.debug_str');
  // Lists of entries may share their tails. No real index reads the same tail over and over.
  let budget = pool.remaining * 2 + nameCount;
  debug.elf.budget.spend(budget, '.debug_names');
  for (let i = 0; i < nameCount; i++) {
    const hash = hashName(text, word(strings), text.length);
    const list = pool.at(pool.offset + word(entries));
    const seen = new Set<number>();
    for (let code = list.uleb(); code !== 0; code = list.uleb()) {
      if (--budget < 0) throw new RsptraceError('DWARF_DAMAGED', 'its lists of entries overlap many times over');
      const abbreviation = abbreviations.get(code);
      if (abbreviation === undefined) throw list.truncated(`a declared abbreviation, found ${code}`);
      const { unit, type, offset } = readEntry(list, abbreviation);
      if (offset === undefined) {
        throw new RsptraceError(
          'DWARF_NO_OFFSETS',
          'it leads to units, not to entries, as the ones that gdb 13 writes do',
        );
      }
      const home = type !== undefined ? types[type] : units[unit ?? 0];
      // The entries of a skeleton whose .dwo file was not found are nowhere.
      if (home?.header.type === DW_UT.skeleton) continue;
      const entry = home && target(home, home.offset + offset, abbreviation.tag);
      if (entry === undefined || seen.has(entry.offset)) continue;
      seen.add(entry.offset);
      debug.elf.budget.hold(BYTES_OF_ENTRY, '.debug_names');
      found.hashes.push(hash);
      found.offsets.push(entry.offset);
      found.kinds.push(entry.kind);
    }
  }
  return found;
}

/** The target of an entry: for an inlined copy, the function that it is a copy of. */
function target(unit: Unit, offset: number, tag: number): { offset: number; kind: number } | undefined {
  const kind = kindOf(tag);
  if (kind !== 0) return { offset, kind };
  if (tag !== DW_TAG.inlined_subroutine || offset >= unit.end) return undefined;
  const origin = Die.at(unit, offset).reference(DW_AT.abstract_origin);
  return origin === undefined ? undefined : { offset: origin, kind: KIND.function };
}

function readAbbreviations(r: ByteReader): Map<number, Abbreviation> {
  const found = new Map<number, Abbreviation>();
  while (r.remaining > 0) {
    const code = r.uleb();
    if (code === 0) break;
    const tag = r.uleb();
    const attributes: { index: number; form: number }[] = [];
    for (;;) {
      const index = r.uleb();
      const form = r.uleb();
      if (index === 0 && form === 0) break;
      // Its value would be here, but no producer writes one.
      if (form === DW_FORM.implicit_const) throw new RsptraceError('DWARF_VERSION', 'it uses implicit_const');
      attributes.push({ index, form });
    }
    if (!found.has(code)) found.set(code, { tag, attributes });
  }
  return found;
}

function readEntry(r: ByteReader, { attributes }: Abbreviation): { unit?: number; type?: number; offset?: number } {
  const entry: { unit?: number; type?: number; offset?: number } = {};
  for (const { index, form } of attributes) {
    const value = readValue(r, form);
    if (index === DW_IDX.compile_unit) entry.unit = value;
    else if (index === DW_IDX.type_unit) entry.type = value;
    else if (index === DW_IDX.die_offset) entry.offset = value;
  }
  return entry;
}

/** Constants, references inside the unit and flags; other values are skipped. */
function readValue(r: ByteReader, form: number): number {
  const size = fixedSize(form, { version: 5, addressSize: 8, offsetSize: 4 });
  switch (size) {
    case 0:
      return 1;
    case 1:
      return r.u8();
    case 2:
      return r.u16();
    case 4:
      return r.u32();
    case 8:
      if (form !== DW_FORM.ref_sig8) return r.u64n();
      r.skip(8);
      return 0;
    case SKIP.leb:
      return r.uleb();
    default:
      throw new RsptraceError('DWARF_VERSION', `it uses the form 0x${form.toString(16)}`);
  }
}
