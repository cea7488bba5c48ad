import { type CodeReferences, leavingBy, type ScanOptions } from '../code-references.js';
import { decoded } from './relocate.js';

const NOT_KNOWN = Number.NaN;

/**
 * AArch64 code is scanned word by word (DDI 0487, C4.1), data between it too.
 *
 *     b, bl, b.cond, cbz, tbz                  a distance
 *     adr; adrp and add, ldr, str              an address, the page kept by its register
 *     movz, movn, movk                         an address in parts, in programs with fixed ones
 *     ldr of a literal                         a word of the text that may be one
 */
export const references: CodeReferences = {
  scan(code, options) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const upper = new Float64Array(32).fill(NOT_KNOWN);
    for (let i = 0; i + 4 <= code.length; i += 4) {
      const word = view.getInt32(i, true);
      branches(word, options.at + i, options);
      addresses(word, options.at + i, upper, options);
      if ((word & 0xff00_0000) === 0x5800_0000) literal(view, i + (((word << 8) >> 13) << 2), options);
    }
  },
  leave: (code, at) => leavingBy(decoded(code).targets, code, at),
};

function branches(word: number, here: number, { leads }: ScanOptions): void {
  if ((word & 0x7c00_0000) === 0x1400_0000) leads(here + ((word << 6) >> 4));
  // b.cond, cbz, cbnz: 19 bits; tbz, tbnz: 14.
  else if ((word & 0xff00_0000) === 0x5400_0000 || (word & 0x7e00_0000) === 0x3400_0000)
    leads(here + (((word << 8) >> 13) << 2));
  else if ((word & 0x7e00_0000) === 0x3600_0000) leads(here + (((word << 13) >> 18) << 2));
}

/** The page of an address, without loss: addresses are below 2^53. */
const pageOf = (address: number): number => address - (((address % 4096) + 4096) % 4096);

function addresses(word: number, here: number, upper: Float64Array, { isFixed, names }: ScanOptions): void {
  const [rd, rn] = [word & 31, (word >> 5) & 31];
  if ((word & 0x1f00_0000) === 0x1000_0000) {
    const imm = (((word << 8) >> 13) << 2) | ((word >> 29) & 3);
    upper[rd] = word < 0 ? pageOf(here) + imm * 4096 : NOT_KNOWN;
    if (word >= 0) names(here + imm);
    return;
  }
  // add of 64 bits with 12 bits, not shifted; and accesses with a scaled offset, of which the load of a pointer counts.
  if ((word & 0xffc0_0000) === (0x9100_0000 | 0) && !Number.isNaN(upper[rn]))
    names((upper[rn] as number) + ((word >> 10) & 0xfff));
  if ((word & 0x1f80_0000) !== 0x1280_0000) {
    if (rd === rn && (word & 0x1f00_0000) === 0x1100_0000) upper[rd] = NOT_KNOWN;
    return;
  }
  const [op, part, imm] = [(word >> 29) & 3, (word >> 21) & 3, (word >> 5) & 0xffff];
  if (!isFixed) return;
  const shifted = imm * 65536 ** part;
  if (op === 2) upper[rd] = shifted;
  else if (op === 0) upper[rd] = -shifted - 1;
  else if (op === 3 && !Number.isNaN(upper[rd])) upper[rd] = replaced(upper[rd] as number, part, imm);
  if (!Number.isNaN(upper[rd])) names(upper[rd] as number);
}

/** A number with another part of 16 bits. */
function replaced(value: number, part: number, imm: number): number {
  const unit = 65536 ** part;
  const old = ((Math.floor(value / unit) % 65536) + 65536) % 65536;
  return value + (imm - old) * unit;
}

/** A word of 64 bits in the text. */
function literal(view: DataView, at: number, { text, holds }: ScanOptions): void {
  if (at < 0 || at + 8 > view.byteLength) return;
  const value = Number(view.getBigInt64(at, true));
  if (value >= text.low && value < text.high) holds(value);
}
