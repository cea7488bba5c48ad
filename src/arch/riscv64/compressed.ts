import type { Operation } from './decode.js';
import { RA, SP } from './registers.js';

/**
 * The RISC-V Instruction Set Manual, volume I, "C" extension 2.0: all RV64C instructions, expanded to the base
 * instruction they stand for. Reserved encodings are refused (undefined), hints expand as the manual says (they write
 * x0). Zcb and Zcm are refused.
 *
 *      15 13 12 11      7 6       2 1 0
 *     | f3  |  | rd/rs1  |  rs2    | q |       short registers (rd', rs1', rs2'): three bits, x8 to x15
 */
export function expandCompressed(half: number): Operation | undefined {
  const f3 = (half >> 13) & 7;
  switch (half & 3) {
    case 0:
      return quadrant0(half, f3);
    case 1:
      return quadrant1(half, f3);
    case 2:
      return quadrant2(half, f3);
    default:
      return undefined;
  }
}

/** `count` bits of `half` from bit `from` up, moved to bit `to`. */
function field(half: number, from: number, count: number, to: number): number {
  return ((half >> from) & ((1 << count) - 1)) << to;
}

function signed(value: number, bits: number): number {
  return (value << (32 - bits)) >> (32 - bits);
}

/** imm[5] at bit 12, imm[4:0] at 6:2. */
const immediate6 = (half: number): number => signed(field(half, 12, 1, 5) | field(half, 2, 5, 0), 6);
const shift6 = (half: number): number => field(half, 12, 1, 5) | field(half, 2, 5, 0);

function quadrant0(half: number, f3: number): Operation | undefined {
  const rs1 = 8 + field(half, 7, 3, 0);
  const other = 8 + field(half, 2, 3, 0);
  const word = field(half, 10, 3, 3) | field(half, 6, 1, 2) | field(half, 5, 1, 6);
  const double = field(half, 10, 3, 3) | field(half, 5, 2, 6);
  switch (f3) {
    case 0: {
      // c.addi4spn: zuimm[5:4|9:6|2|3]; zero is reserved, and the all-zero half-word the defined illegal instruction.
      const imm = field(half, 11, 2, 4) | field(half, 7, 4, 6) | field(half, 6, 1, 2) | field(half, 5, 1, 3);
      return imm === 0 ? undefined : { form: 'immediate', op: 'addi', rd: other, rs1: SP, imm };
    }
    case 1:
      return { form: 'float-load', op: 'fld', rd: other, rs1, imm: double };
    case 2:
      return { form: 'load', op: 'lw', rd: other, rs1, imm: word };
    case 3:
      return { form: 'load', op: 'ld', rd: other, rs1, imm: double };
    case 5:
      return { form: 'float-store', op: 'fsd', rs1, rs2: other, imm: double };
    case 6:
      return { form: 'store', op: 'sw', rs1, rs2: other, imm: word };
    case 7:
      return { form: 'store', op: 'sd', rs1, rs2: other, imm: double };
    default:
      return undefined;
  }
}

function quadrant1(half: number, f3: number): Operation | undefined {
  const rd = field(half, 7, 5, 0);
  const imm = immediate6(half);
  switch (f3) {
    case 0:
      return { form: 'immediate', op: 'addi', rd, rs1: rd, imm };
    case 1:
      return rd === 0 ? undefined : { form: 'immediate', op: 'addiw', rd, rs1: rd, imm };
    case 2:
      return { form: 'immediate', op: 'addi', rd, rs1: 0, imm };
    case 3:
      return rd === SP
        ? addStackPointer(half)
        : imm === 0
          ? undefined
          : { form: 'upper', op: 'lui', rd, imm: imm << 12 };
    case 4:
      return arithmetic(half);
    case 5: {
      // c.j: imm[11|4|9:8|10|6|7|3:1|5]
      const offset =
        field(half, 12, 1, 11) |
        field(half, 11, 1, 4) |
        field(half, 9, 2, 8) |
        field(half, 8, 1, 10) |
        field(half, 7, 1, 6) |
        field(half, 6, 1, 7) |
        field(half, 3, 3, 1) |
        field(half, 2, 1, 5);
      return { form: 'jump', op: 'jal', rd: 0, imm: signed(offset, 12) };
    }
    default: {
      // c.beqz, c.bnez: imm[8|4:3] rs1' imm[7:6|2:1|5]
      const offset =
        field(half, 12, 1, 8) |
        field(half, 10, 2, 3) |
        field(half, 5, 2, 6) |
        field(half, 3, 2, 1) |
        field(half, 2, 1, 5);
      const rs1 = 8 + field(half, 7, 3, 0);
      return { form: 'branch', op: f3 === 6 ? 'beq' : 'bne', rs1, rs2: 0, imm: signed(offset, 9) };
    }
  }
}

/** c.addi16sp: nzimm[9] sp nzimm[4|6|8:7|5]. */
function addStackPointer(half: number): Operation | undefined {
  const imm = signed(
    field(half, 12, 1, 9) | field(half, 6, 1, 4) | field(half, 5, 1, 6) | field(half, 3, 2, 7) | field(half, 2, 1, 5),
    10,
  );
  return imm === 0 ? undefined : { form: 'immediate', op: 'addi', rd: SP, rs1: SP, imm };
}

const registerArithmetic = ['sub', 'xor', 'or', 'and', 'subw', 'addw'] as const;

function arithmetic(half: number): Operation | undefined {
  const rd = 8 + field(half, 7, 3, 0);
  switch (field(half, 10, 2, 0)) {
    case 0:
      return { form: 'immediate', op: 'srli', rd, rs1: rd, imm: shift6(half) };
    case 1:
      return { form: 'immediate', op: 'srai', rd, rs1: rd, imm: shift6(half) };
    case 2:
      return { form: 'immediate', op: 'andi', rd, rs1: rd, imm: immediate6(half) };
    default: {
      const op = registerArithmetic[field(half, 12, 1, 2) | field(half, 5, 2, 0)];
      return op && { form: 'register', op, rd, rs1: rd, rs2: 8 + field(half, 2, 3, 0) };
    }
  }
}

function quadrant2(half: number, f3: number): Operation | undefined {
  const rd = field(half, 7, 5, 0);
  const rs2 = field(half, 2, 5, 0);
  const loadWord = field(half, 12, 1, 5) | field(half, 4, 3, 2) | field(half, 2, 2, 6);
  const loadDouble = field(half, 12, 1, 5) | field(half, 5, 2, 3) | field(half, 2, 3, 6);
  const storeWord = field(half, 9, 4, 2) | field(half, 7, 2, 6);
  const storeDouble = field(half, 10, 3, 3) | field(half, 7, 3, 6);
  switch (f3) {
    case 0:
      return { form: 'immediate', op: 'slli', rd, rs1: rd, imm: shift6(half) };
    case 1:
      return { form: 'float-load', op: 'fld', rd, rs1: SP, imm: loadDouble };
    case 2:
      return rd === 0 ? undefined : { form: 'load', op: 'lw', rd, rs1: SP, imm: loadWord };
    case 3:
      return rd === 0 ? undefined : { form: 'load', op: 'ld', rd, rs1: SP, imm: loadDouble };
    case 4:
      return moveOrJump(half, rd, rs2);
    case 5:
      return { form: 'float-store', op: 'fsd', rs1: SP, rs2, imm: storeDouble };
    case 6:
      return { form: 'store', op: 'sw', rs1: SP, rs2, imm: storeWord };
    default:
      return { form: 'store', op: 'sd', rs1: SP, rs2, imm: storeDouble };
  }
}

function moveOrJump(half: number, rd: number, rs2: number): Operation | undefined {
  const link = (half & 0x1000) !== 0;
  if (rs2 !== 0) return { form: 'register', op: 'add', rd, rs1: link ? rd : 0, rs2 };
  if (rd !== 0) return { form: 'jump-register', op: 'jalr', rd: link ? RA : 0, rs1: rd, imm: 0 };
  return link ? { form: 'system', op: 'ebreak' } : undefined;
}
