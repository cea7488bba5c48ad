// Address ranges of a DIE: low_pc/high_pc, or DW_AT.ranges into .debug_ranges (DWARF 2-4: pairs of addresses,
// relative to the unit's base) or .debug_rnglists (DWARF 5, section 7.25: tagged entries).
//
// Every list is bounded by its section. Its entries are charged each time, because functions of a damaged file may
// share one list. Empty ranges, reversed ones and those outside every address space are left out. Those of discarded
// functions (linkers leave 0, 1 or -1) are kept: see ElfFile.isLoaded.
import { ByteReader } from '../base/byte-reader.js';
import type { CodeAddress } from '../elf/index.js';
import { DW_AT, DW_FORM } from './constants.js';
import type { Die, DieCursor } from './die.js';
import { indexedAddress, readNumber } from './forms.js';
import { DW_RLE } from './list-codes.js';
import type { Unit } from './unit.js';

/** Half-open. */
export interface AddressRange {
  readonly low: CodeAddress;
  readonly high: CodeAddress;
}

/** Units of the budget for one entry of a list, of ranges or of locations: an object each. */
export const RANGE = 4;

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
  if (unit.version < 5) return readOldRanges(unit, value + (unit.skeleton?.root.number(DW_AT.GNU_ranges_base) ?? 0));
  const offset =
    ranges.form === DW_FORM.rnglistx ? listOffset(unit, '.debug_rnglists', unit.bases.rnglists, value) : value;
  return readRangeList(unit, offset);
}

/** Entry `index` of the offset array at `base` (DWARF 5, sections 7.28 and 7.29). */
export function listOffset(unit: Unit, section: string, base: number, index: number): number {
  const r = new ByteReader(unit.sections.get(section), section);
  const at = r.at(Math.min(r.end, base + index * unit.offsetSize));
  return base + (unit.offsetSize === 8 ? at.u64n() : at.u32());
}

/** The next address of a reader, in the unit's size, shifted to its place in memory. */
export function readAddress(r: ByteReader, unit: Unit): CodeAddress {
  return unit.codes.ofFile(r.u32(), unit.addressSize === 8 ? r.u32() : 0);
}

/**
 * The next entry of a list of DWARF 2 to 4 (sections 2.17.3 and 2.6.2 of version 4): two words, relative to `base`.
 * An entry may change `base`. Undefined at the end of the list.
 */
export function readOldEntry(
  r: ByteReader,
  unit: Unit,
  base: CodeAddress,
): { readonly base: CodeAddress } | AddressRange | undefined {
  const wide = unit.addressSize === 8;
  const [low, lowHigh] = [r.u32(), wide ? r.u32() : 0];
  const [high, highHigh] = [r.u32(), wide ? r.u32() : 0];
  if (low === 0 && lowHigh === 0 && high === 0 && highHigh === 0) return undefined;
  if (low === 0xffff_ffff && (!wide || lowHigh === 0xffff_ffff)) return { base: unit.codes.ofFile(high, highHigh) };
  return { low: unit.codes.plus(base, low, lowHigh), high: unit.codes.plus(base, high, highHigh) };
}

/** The initial base of such a list: the unit's beginning, or 0. */
export function firstBase(unit: Unit): CodeAddress {
  const base = unit.lowPc;
  return Number.isNaN(base) ? unit.codes.ofFile(0, 0) : base;
}

function readOldRanges(unit: Unit, offset: number): AddressRange[] {
  const section = unit.sections.get('.debug_ranges');
  const r = new ByteReader(section, '.debug_ranges', Math.min(offset, section.length));
  let base = firstBase(unit);
  const found: AddressRange[] = [];
  for (;;) {
    unit.budget.spend(RANGE, '.debug_ranges');
    const entry = readOldEntry(r, unit, base);
    if (entry === undefined) return found;
    if ('base' in entry) base = entry.base;
    else if (entry.high > entry.low) found.push(entry);
  }
}

function readRangeList(unit: Unit, offset: number): AddressRange[] {
  const section = unit.sections.get('.debug_rnglists');
  const r = new ByteReader(section, '.debug_rnglists', Math.min(offset, section.length));
  let base = unit.lowPc;
  const found: AddressRange[] = [];
  const add = (low: CodeAddress, high: CodeAddress): void => {
    if (high > low) found.push({ low, high });
  };
  for (;;) {
    unit.budget.spend(RANGE, '.debug_rnglists');
    const kind = r.u8();
    switch (kind) {
      case DW_RLE.end_of_list:
        return found;
      case DW_RLE.base_addressx:
        base = indexedAddress(unit, r.uleb());
        break;
      case DW_RLE.startx_endx:
        add(indexedAddress(unit, r.uleb()), indexedAddress(unit, r.uleb()));
        break;
      case DW_RLE.startx_length: {
        const low = indexedAddress(unit, r.uleb());
        add(low, low + r.uleb());
        break;
      }
      case DW_RLE.offset_pair:
        add(base + r.uleb(), base + r.uleb());
        break;
      case DW_RLE.base_address:
        base = readAddress(r, unit);
        break;
      case DW_RLE.start_end:
        add(readAddress(r, unit), readAddress(r, unit));
        break;
      case DW_RLE.start_length: {
        const low = readAddress(r, unit);
        add(low, low + r.uleb());
        break;
      }
      default:
        throw r.truncated(`a range list entry of a known kind, found ${kind}`);
    }
  }
}
