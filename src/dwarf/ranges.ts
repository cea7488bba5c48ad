// Address ranges of a DIE: low_pc/high_pc, or DW_AT.ranges into .debug_ranges (DWARF 2-4: pairs of addresses,
// relative to the unit's base) or .debug_rnglists (DWARF 5, section 7.25: tagged entries).
//
// Every list is bounded by its section. Its entries are charged each time, because functions of a damaged file may
// share one list. Empty ranges, reversed ones and those outside every address space are left out. Those of discarded
// functions (linkers leave 0, 1 or -1) are kept: see ElfFile.isLoaded.
import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import type { BytesInPart, CodeAddress } from '../elf/index.js';
import { DW_AT, DW_FORM } from './constants.js';
import type { Die, DieCursor } from './die.js';
import { indexedAddress, readNumber } from './forms.js';
import type { Unit } from './unit.js';

/** Half-open. */
export interface AddressRange {
  readonly low: CodeAddress;
  readonly high: CodeAddress;
}

/** Units of the budget for one entry of a list, of ranges or of locations: an object each. */
const RANGE = 4;

/** Numbers of one little-endian word. */
const WORD = 0x1_0000_0000;

/** Bytes of an entry's kind, addresses and the length of what is behind them; padded LEB128s are shorter. */
const LONGEST_ENTRY = 256;

/** The code that an entry covers, in the order of the file; empty if it covers none. */
export function rangesOf(die: Die | DieCursor): AddressRange[] {
  const ranges = die.locate(DW_AT.ranges);
  if (ranges === undefined) {
    const low = die.lowPc;
    const high = die.highPc;
    return high > low ? [{ low, high }] : [];
  }
  const { unit } = die;
  const value = readNumber(unit, ranges);
  if (value === undefined) return [];
  const found: AddressRange[] = [];
  const add: Add = (low, high) => {
    if (high > low) found.push({ low, high });
  };
  if (unit.version < 5) {
    const base = unit.skeleton?.root.number(DW_AT.GNU_ranges_base) ?? 0;
    readOldList(unit, '.debug_ranges', value + base, add);
  } else {
    const { section } = rangeLists;
    const offset = ranges.form === DW_FORM.rnglistx ? listOffset(unit, section, unit.bases.rnglists, value) : value;
    readList(unit, offset, rangeLists, add);
  }
  return found;
}

/** Entry `index` of the offset array at `base` (DWARF 5, sections 7.28 and 7.29). */
export function listOffset(unit: Unit, section: string, base: number, index: number): number {
  const { bytes, need } = unit.sections.inPart(section);
  const r = new ByteReader(bytes, section);
  const at = r.at(Math.min(r.end, base + index * 4));
  need(at.offset, at.offset + 4);
  return base + at.u32();
}

/** What is done with an entry of a list. What stands behind its addresses is read there, once it is needed. */
type Add = (low: CodeAddress, high: CodeAddress, r: ByteReader, need: BytesInPart['need']) => void;

/**
 * Reads a list of DWARF 2 to 4 (sections 2.17.3 and 2.6.2 of version 4): two words, relative to a base, which is the
 * unit's beginning or 0 at first. An entry may change it.
 */
export function readOldList(unit: Unit, section: string, offset: number, add: Add): void {
  const { bytes, need } = unit.sections.inPart(section);
  const r = new ByteReader(bytes, section, Math.min(offset, bytes.length));
  let base = Number.isNaN(unit.lowPc) ? unit.codes.ofFile(0, 0) : unit.lowPc;
  for (;;) {
    unit.budget.spend(RANGE, section);
    need(r.offset, r.offset + LONGEST_ENTRY);
    const [low, lowHigh, high, highHigh] = [r.u32(), r.u32(), r.u32(), r.u32()];
    if (low === 0 && lowHigh === 0 && high === 0 && highHigh === 0) return;
    if (low === 0xffff_ffff && lowHigh === 0xffff_ffff) base = unit.codes.ofFile(high, highHigh);
    else add(unit.codes.plus(base, low, lowHigh), unit.codes.plus(base, high, highHigh), r, need);
  }
}

/** How a list of kinds and operands is spelt. */
export interface ListForm {
  readonly section: string;
  /** As errors name it. */
  readonly name: string;
  readonly of: 'range' | 'location';
  /** By number: DWARF 5, tables 7.30 (ranges) and 7.10 (locations). */
  readonly kinds: readonly EntryKind[];
  /** A length, or a distance from the base. */
  readonly distance: (r: ByteReader) => number;
}

type EntryKind = (typeof rangeKinds)[number] | 'default_location';
const rangeKinds = [
  'end_of_list',
  'base_addressx',
  'startx_endx',
  'startx_length',
  'offset_pair',
  'base_address',
  'start_end',
  'start_length',
] as const;
/** Location lists have one more. */
export const locationKinds: readonly EntryKind[] = [
  ...rangeKinds.slice(0, 5),
  'default_location',
  ...rangeKinds.slice(5),
];

/** Reads a list of DWARF 5. */
export function readList(unit: Unit, offset: number, form: ListForm, add: Add): void {
  const { section, name, kinds, distance, of } = form;
  const { bytes, need } = unit.sections.inPart(section);
  const r = new ByteReader(bytes, name, Math.min(offset, bytes.length));
  const indexed = (): CodeAddress => indexedAddress(unit, r.uleb());
  const plain = (): CodeAddress => unit.codes.ofFile(r.u32(), r.u32());
  /** Words, because a distance may lead out of the numbers that the address is among. */
  const behind = (code: CodeAddress): CodeAddress => {
    const by = distance(r);
    return unit.codes.plus(code, by % WORD, Math.floor(by / WORD));
  };
  const from = (low: CodeAddress): void => add(low, behind(low), r, need);
  let base = unit.lowPc;
  for (;;) {
    unit.budget.spend(RANGE, name);
    need(r.offset, r.offset + LONGEST_ENTRY);
    const kind = r.u8();
    switch (kinds[kind]) {
      case 'end_of_list':
        return;
      case 'base_addressx':
        base = indexed();
        break;
      case 'base_address':
        base = plain();
        break;
      case 'startx_endx':
        add(indexed(), indexed(), r, need);
        break;
      case 'startx_length':
        from(indexed());
        break;
      case 'offset_pair':
        add(behind(base), behind(base), r, need);
        break;
      case 'default_location':
        add(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, r, need);
        break;
      case 'start_end':
        add(plain(), plain(), r, need);
        break;
      case 'start_length':
        from(plain());
        break;
      default:
        throw new RsptraceError(
          'DWARF_DAMAGED',
          `${name} has a ${of} list entry of the unknown kind ${kind} at offset 0x${(r.offset - 1).toString(16)}`,
        );
    }
  }
}

const rangeLists: ListForm = {
  ...{ section: '.debug_rnglists', name: '.debug_rnglists', of: 'range', kinds: rangeKinds },
  distance: (r) => r.uleb(),
};
