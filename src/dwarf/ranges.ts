// Address ranges of a DIE: low_pc/high_pc, or DW_AT.ranges into .debug_ranges (DWARF 2-4: pairs of addresses, relative to the
// unit's base) or .debug_rnglists (DWARF 5, section 7.25: tagged entries).
//
// Every list is bounded by its section. Empty ranges, reversed ones and those outside every
// address space are left out; those of discarded functions (linkers leave 0, 1 or -1) are not: see ElfFile.isLoaded.
import { ByteReader } from '../base/byte-reader.js';
import { type CodeAddress, codeOf } from './code-address.js';
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

/** The code that an entry covers, in the order of the file; empty when it covers none. */
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
  if (unit.version < 5) return readOldRanges(unit, value);
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

/** The next address of a reader, of the unit's size, where it is in memory. */
export function readAddress(r: ByteReader, unit: Unit): CodeAddress {
  return readWord(r, unit) + unit.loadBias;
}

/** The same as the file has it: an offset, or an address as it was linked. */
export function readWord(r: ByteReader, unit: Unit): CodeAddress {
  return unit.addressSize === 8 ? codeOf(r.u32(), r.u32()) : r.u32();
}

function readOldRanges(unit: Unit, offset: number): AddressRange[] {
  const section = unit.sections.get('.debug_ranges');
  const r = new ByteReader(section, '.debug_ranges', Math.min(offset, section.length));
  const largest = unit.addressSize === 8 ? -1 : 0xffff_ffff;
  let base = unit.root.lowPc;
  if (Number.isNaN(base)) base = unit.loadBias;
  const found: AddressRange[] = [];
  for (;;) {
    const low = readWord(r, unit);
    const high = readWord(r, unit);
    if (low === 0 && high === 0) return found;
    if (low === largest) base = high + unit.loadBias;
    else if (high > low) found.push({ low: base + low, high: base + high });
  }
}

function readRangeList(unit: Unit, offset: number): AddressRange[] {
  const section = unit.sections.get('.debug_rnglists');
  const r = new ByteReader(section, '.debug_rnglists', Math.min(offset, section.length));
  let base = unit.root.lowPc;
  const found: AddressRange[] = [];
  const add = (low: CodeAddress, high: CodeAddress): void => {
    if (high > low) found.push({ low, high });
  };
  for (;;) {
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
