import { checkBy } from '../inject/integers.js';
import { type Assembler, and, eor, eorOnes, sub, T0, T1, T2 } from './assembler.js';

/** Overwrites x16, x17 and x9. */
export const check = checkBy<Assembler>((code, { signed, size, op, value }, left, otherwise) => {
  if (op === 'eq' || op === 'ne') {
    code.loadConstant(T1, value);
    code.emit(eor(T0, left, T1));
    code.branchZero(op === 'eq' ? 'not-zero' : 'zero', T0, otherwise);
    return;
  }
  // As signed numbers of 64 bits: with the highest bit turned over those without a sign have the same order.
  const isTurned = !signed && size === 8;
  if (isTurned) code.emit(eorOnes(T0, left, 1, 63));
  const first = isTurned ? T0 : left;
  code.loadConstant(T1, BigInt.asIntN(64, isTurned ? value ^ (1n << 63n) : value));
  const isSwapped = op === 'gt' || op === 'le';
  below(code, isSwapped ? T1 : first, isSwapped ? first : T1);
  code.branchBit(op === 'lt' || op === 'gt' ? 'zero' : 'not-zero', T0, 63, otherwise);
});

/**
 * Bit 63 of x16 is whether a < b as signed numbers: the sign of a - b, turned over where that overflows. There is no
 * comparison, because the flags are the program's. One of a and b is x17, the other may be x16. Overwrites both and x9.
 */
function below(code: Assembler, a: number, b: number): void {
  const [difference, other] = a === T0 ? [T1, T0] : [T0, T1];
  code.emit(eor(T2, a, b), sub(difference, a, b), eor(other, a, difference));
  code.emit(and(other, other, T2), eor(T0, T0, T1));
}
