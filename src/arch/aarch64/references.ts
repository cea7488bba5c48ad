import { type CodeReferences, leavingBy, type ScanOptions } from '../code-references.js';
import { decoded } from './relocate.js';

const NOT_KNOWN = Number.NaN;

/**
 * AArch64 code is scanned word by word (DDI 0487, C4.1), data between it too.
 *
 *     b, bl, b.cond, cbz, tbz                  a distance
 *     adr; adrp and add                        an address, the page kept by its register
 *     movz, movn, movk                         an address in parts, in programs with fixed ones
 *     ldr of a literal                         a word of the text that may be one
 */
export const references: CodeReferences = {
  scan(code, options) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const made: Made = { values: new Float64Array(32).fill(NOT_KNOWN), isAdded: new Uint8Array(32) };
    for (let i = 0; i + 4 <= code.length; i += 4) {
      const word = view.getInt32(i, true);
      branches(word, options.at + i, options);
      addresses(word, options.at + i, made, options);
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

/** What the code so far, in the order of its addresses, made in each register. */
interface Made {
  /** Pages and numbers, signed as those of code spaces; NaN: none. */
  readonly values: Float64Array;
  /**
   * 1: something was added to the register itself. Code that a branch before that leads to still has the value, so it
   * is kept; what is made of it from there on may be an address or none.
   */
  readonly isAdded: Uint8Array;
}

function addresses(
  word: number,
  here: number,
  { values, isAdded }: Made,
  { isFixed, names, holds }: ScanOptions,
): void {
  const [rd, rn] = [word & 31, (word >> 5) & 31];
  if ((word & 0x1f00_0000) === 0x1000_0000) {
    const imm = (((word << 8) >> 13) << 2) | ((word >> 29) & 3);
    values[rd] = word < 0 ? pageOf(here) + imm * 4096 : NOT_KNOWN;
    isAdded[rd] = 0;
    if (word >= 0) names(here + imm);
    return;
  }
  // add of 64 bits with 12 bits, not shifted.
  if ((word & 0xffc0_0000) === (0x9100_0000 | 0) && !Number.isNaN(values[rn]))
    (isAdded[rn] ? holds : names)((values[rn] as number) + ((word >> 10) & 0xfff));
  if ((word & 0x1f80_0000) !== 0x1280_0000) {
    if (rd === rn && (word & 0x1f00_0000) === 0x1100_0000) isAdded[rd] = 1;
    return;
  }
  if (!isFixed) return;
  const [op, part, imm] = [(word >> 29) & 3, (word >> 21) & 3, (word >> 5) & 0xffff];
  const value = partOf(part, imm);
  if (op === 2) values[rd] = value;
  // Of 32 bits the upper half is zero.
  else if (op === 0) values[rd] = word < 0 ? -value - 1 : ~value >>> 0;
  else if (op === 3 && !Number.isNaN(values[rd])) values[rd] = replaced(values[rd] as number, part, imm);
  if (op !== 3) isAdded[rd] = 0;
  if (!Number.isNaN(values[rd])) names(values[rd] as number);
}

/** What a part of 16 bits contributes to a signed number of 64 bits, whose sign is that of part 3. */
const partOf = (part: number, bits: number): number => (part === 3 ? (bits << 16) >> 16 : bits) * 65536 ** part;

/** A number with another part of 16 bits: exact where both are below 2^53, as addresses are. */
function replaced(value: number, part: number, imm: number): number {
  const old = ((Math.floor(value / 65536 ** part) % 65536) + 65536) % 65536;
  return value - partOf(part, old) + partOf(part, imm);
}

/** A word of 64 bits in the text. */
function literal(view: DataView, at: number, { text, holds }: ScanOptions): void {
  if (at < 0 || at + 8 > view.byteLength) return;
  const value = Number(view.getBigInt64(at, true));
  if (value >= text.low && value < text.high) holds(value);
}
