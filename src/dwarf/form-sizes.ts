// How many bytes each form takes in .debug_info: DWARF 5, sections 7.5.5 and 7.5.6, with offsets of 4 bytes and
// addresses of 8; DWARF 2's ref_addr is as wide as an address. Refused: DW_FORM_indirect, which no compiler writes.
import { RsptraceError } from '../base/errors.js';
import { DW_FORM } from './constants.js';

/** Results of {@link fixedSize} for forms whose size is stored with the value. */
export const SKIP = {
  leb: -1,
  string: -2,
  block1: -3,
  block2: -4,
  block4: -5,
  block: -6,
  unknown: -7,
} as const;

/** By form: its bytes in all units, or one of {@link SKIP}. */
const SIZES = new Int8Array(0x2000).fill(SKIP.unknown);
for (const [size, names] of [
  [0, ['flag_present', 'implicit_const']],
  [1, ['data1', 'ref1', 'flag', 'strx1', 'addrx1']],
  [2, ['data2', 'ref2', 'strx2', 'addrx2']],
  [3, ['strx3', 'addrx3']],
  [4, ['data4', 'ref4', 'ref_addr', 'ref_sup4', 'strx4', 'addrx4', 'GNU_ref_alt']],
  [4, ['strp', 'line_strp', 'strp_sup', 'sec_offset', 'GNU_strp_alt']],
  [8, ['addr', 'data8', 'ref8', 'ref_sup8', 'ref_sig8']],
  [16, ['data16']],
  [SKIP.leb, ['sdata', 'udata', 'ref_udata', 'strx', 'addrx', 'loclistx', 'rnglistx']],
  [SKIP.leb, ['GNU_addr_index', 'GNU_str_index']],
  [SKIP.string, ['string']],
  [SKIP.block1, ['block1']],
  [SKIP.block2, ['block2']],
  [SKIP.block4, ['block4']],
  [SKIP.block, ['block', 'exprloc']],
] as const)
  for (const name of names) SIZES[DW_FORM[name]] = size;

/** Bytes a form takes, or one of {@link SKIP}. */
export function fixedSize(form: number, version: number): number {
  return version <= 2 && form === DW_FORM.ref_addr ? 8 : (SIZES[form] ?? SKIP.unknown);
}

/**
 * The offset behind one value of variable size. Reads past the end of `bytes` see zeros; then the result is at the
 * end or past it.
 */
export function skipStep(bytes: Uint8Array, offset: number, step: number): number {
  let at = offset;
  switch (step) {
    case SKIP.leb:
      return lebEnd(bytes, at);
    case SKIP.string:
      at = bytes.indexOf(0, at);
      return at < 0 ? bytes.length + 1 : at + 1;
    case SKIP.block1:
      return at + 1 + (bytes[at] ?? 0);
    case SKIP.block2:
      return at + 2 + u16At(bytes, at);
    case SKIP.block4:
      return at + 4 + u32At(bytes, at);
    case SKIP.block:
      return lebEnd(bytes, at) + ulebAt(bytes, at);
    default:
      throw new RsptraceError(
        'DWARF_VERSION',
        `an entry at offset 0x${offset.toString(16)} of its section uses an unknown form`,
      );
  }
}

export function u16At(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

export function u32At(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  );
}

/** Unsigned LEB128 at an offset; past 2^53 it loses low bits, which any check against a section's size then refuses. */
export function ulebAt(bytes: Uint8Array, at: number): number {
  let byte = bytes[at] as number;
  if (byte < 0x80) return byte;
  let value = 0;
  let scale = 1;
  for (let i = at; i < at + 10; i++) {
    byte = bytes[i] ?? 0;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) break;
    scale *= 128;
  }
  return value;
}

/**
 * The offset behind a LEB128 number. It ends after more bytes than any producer writes, because in a damaged file one
 * may have no end.
 */
export function lebEnd(bytes: Uint8Array, offset: number): number {
  let at = offset;
  while ((bytes[at] ?? 0) >= 0x80 && at - offset < MAX_LEB) at++;
  return at + 1;
}

const MAX_LEB = 64;
