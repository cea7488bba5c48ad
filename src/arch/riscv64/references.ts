import { type CodeReferences, leavingBy, type ScanOptions } from '../code-references.js';
import { immediateB, immediateJ } from './decode.js';
import { decoded } from './relocate.js';

const NOT_KNOWN = Number.NaN;

/**
 * RISC-V code is scanned instruction by instruction (unprivileged ISA, "Base Instruction Formats" and "Compressed
 * Instruction Formats"). Where data lies between, known starts bring it back in step.
 *
 *     jal, branches, c.j, c.beqz, c.bnez       a distance
 *     auipc, lui and jalr, addi, addiw         an address in two parts, the upper one kept by its register
 */
export const references: CodeReferences = {
  scan(code, options) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    let from = 0;
    for (const start of options.starts) {
      if (start <= from || start > code.length) continue;
      stretch(view, from, start, options);
      from = start;
    }
    stretch(view, from, code.length, options);
  },
  leave: (code, at) => leavingBy(decoded(code).targets, code, at),
};

function stretch(view: DataView, from: number, end: number, options: ScanOptions): void {
  const { at, leads } = options;
  const upper = new Float64Array(32).fill(NOT_KNOWN);
  for (let i = from; i + 2 <= end; ) {
    const half = view.getUint16(i, true);
    if ((half & 3) !== 3) {
      const to = compressedDistance(half);
      if (to !== 0) leads(at + i + to);
      i += 2;
      continue;
    }
    if (i + 4 > end) return;
    whole(view.getInt32(i, true), at + i, upper, options);
    // Longer ones begin with 11111.
    i += (half & 0x1c) === 0x1c ? ((half & 0x20) === 0 ? 6 : 8) : 4;
  }
}

function whole(bits: number, here: number, upper: Float64Array, { isFixed, leads, names }: ScanOptions): void {
  const rd = (bits >> 7) & 31;
  const rs1 = (bits >> 15) & 31;
  const immediate = bits >> 20;
  switch (bits & 0x7f) {
    case 0x6f:
      leads(here + immediateJ(bits));
      return;
    case 0x63:
      leads(here + immediateB(bits));
      return;
    case 0x67:
      if (!Number.isNaN(upper[rs1])) leads((upper[rs1] as number) + immediate);
      return;
    case 0x17:
      upper[rd] = here + (bits & ~0xfff);
      return;
    case 0x37:
      upper[rd] = isFixed ? bits & ~0xfff : NOT_KNOWN;
      return;
    case 0x13:
    case 0x1b:
      if ((bits & 0x7000) !== 0) return;
      if (!Number.isNaN(upper[rs1])) names((upper[rs1] as number) + immediate);
      if (rd === rs1) upper[rd] = NOT_KNOWN;
      return;
    default:
  }
}

/** Of c.j, c.beqz and c.bnez; 0 for others. */
function compressedDistance(half: number): number {
  const bit = (from: number, to: number): number => ((half >> from) & 1) << to;
  switch (half & 0xe003) {
    case 0xa001:
      return (
        (bit(12, 31) >> 20) |
        (bit(11, 4) | bit(10, 9) | bit(9, 8) | bit(8, 10) | bit(7, 6) | bit(6, 7) | bit(5, 3)) |
        (bit(4, 2) | bit(3, 1) | bit(2, 5))
      );
    case 0xc001:
    case 0xe001:
      return (
        (bit(12, 31) >> 23) | (bit(11, 4) | bit(10, 3) | bit(6, 7) | bit(5, 6)) | (bit(4, 2) | bit(3, 1) | bit(2, 5))
      );
    default:
      return 0;
  }
}
