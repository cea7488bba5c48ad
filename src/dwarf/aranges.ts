// .debug_aranges: DWARF 5, section 6.1.2. Sets of
//
//   unit_length | version 2 (2) | debug_info_offset | address_size (1) | segment_selector_size (1)
//   | padding to 2 addresses | { address | length }* | 0 | 0
//
// Refused, with a warning, and the other sets used: segment selectors, other versions, sets of no unit.
import { ByteReader } from '../base/byte-reader.js';
import { isDamage, messageOf, RsptraceError } from '../base/errors.js';
import { type CodeAddress, signedWord } from '../elf/index.js';
import type { DebugInfo } from './debug-info.js';
import type { Unit } from './unit.js';

/** Calls `add` for each range of the section that is not empty. */
export function readAranges(debug: DebugInfo, add: (unit: Unit, low: CodeAddress, high: CodeAddress) => void): void {
  const r = new ByteReader(debug.sections.get('.debug_aranges'), '.debug_aranges');
  while (r.remaining > 0) {
    const start = r.offset;
    let end = r.end;
    try {
      let length = r.u32();
      const wide = length === 0xffff_ffff;
      if (wide) length = r.u64n();
      if (length > r.remaining) throw r.truncated(`a set of 0x${length.toString(16)} bytes`);
      end = r.offset + length;
      readSet(debug, r.at(r.offset, end), start, wide, add);
    } catch (error) {
      if (!isDamage(error)) throw error;
      debug.warn(`.debug_aranges: the set at offset 0x${start.toString(16)} is not used: ${messageOf(error)}`);
    }
    r.offset = end;
  }
}

function readSet(
  debug: DebugInfo,
  r: ByteReader,
  start: number,
  wide: boolean,
  add: (unit: Unit, low: CodeAddress, high: CodeAddress) => void,
): void {
  const version = r.u16();
  if (version !== 2) throw new RsptraceError('DWARF_VERSION', `its version is ${version}`);
  const offset = wide ? r.u64n() : r.u32();
  const size = r.u8();
  const selector = r.u8();
  if ((size !== 8 && size !== 4) || selector !== 0) {
    throw new RsptraceError('DWARF_DAMAGED', `addresses of ${size} bytes, segment selectors of ${selector}`);
  }
  const unit = debug.unitBeginningAt(offset);
  if (unit === undefined) {
    throw new RsptraceError('DWARF_DAMAGED', `no unit begins at 0x${offset.toString(16)}`);
  }
  r.skip(Math.min(r.remaining, -(r.offset - start) & (2 * size - 1)));
  while (r.remaining >= 2 * size) {
    const [low, high] = [r.u32(), size === 8 ? r.u32() : 0];
    const length = size === 8 ? signedWord(r.u32(), r.u32()) : r.u32();
    if (low === 0 && high === 0 && length === 0) break;
    const code = unit.codes.ofFile(low, high);
    if (length > 0) add(unit, code, code + length);
  }
}
