import type { Label } from '../inject/code-buffer.js';
import { type Condition, decided, type IntegerIn } from '../inject/record-parts.js';
import {
  type Assembler,
  access,
  add,
  and,
  andOnes,
  eor,
  eorOnes,
  extend,
  isNear,
  sub,
  T0,
  T1,
  T2,
} from './assembler.js';
import { registerNamed } from './registers.js';

/** Jumps to `otherwise` unless the condition holds; overwrites x16, x17 and x9. */
export function check(code: Assembler, condition: Condition, otherwise: Label): void {
  const { signed, size, op, value } = condition;
  const holds = decided(condition);
  if (holds !== undefined) {
    if (!holds) code.jump(otherwise);
    else if (condition.behind) {
      // There must be an integer all the same.
      const pointer = code.original(registerNamed(condition.register), T0);
      loaded(code, pointer, condition, condition.behind, otherwise);
    }
    return;
  }
  const left = integer(code, condition, otherwise);
  if (op === 'eq' || op === 'ne') {
    code.loadConstant(T1, value);
    code.emit(eor(T0, left, T1));
    code.branch(op === 'eq' ? 'not-zero' : 'zero', T0, otherwise);
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
}

/**
 * Bit 63 of x16 is whether a < b as signed numbers: the sign of a - b, turned over where that overflows. There is no
 * comparison, because the flags are the program's. One of a and b is x17, the other may be x16. Overwrites both and x9.
 */
function below(code: Assembler, a: number, b: number): void {
  const [difference, other] = a === T0 ? [T1, T0] : [T0, T1];
  code.emit(eor(T2, a, b), sub(difference, a, b), eor(other, a, difference));
  code.emit(and(other, other, T2), eor(T0, T0, T1));
}

/** The register with an integer; overwrites x16 and x17. Jumps to `otherwise` if a pointer on the way leads nowhere. */
export function integer(code: Assembler, of: IntegerIn, otherwise: Label): number {
  const register = code.original(registerNamed(of.register), T0);
  if (of.behind) return loaded(code, register, of, of.behind, otherwise);
  if (of.size === 8) return register;
  code.emit(extend(T0, register, of.size, of.signed));
  return T0;
}

/** The integer behind a pointer, in x16; overwrites x17. */
function loaded(
  code: Assembler,
  register: number,
  { size, signed }: IntegerIn,
  { through, offset }: NonNullable<IntegerIn['behind']>,
  otherwise: Label,
): number {
  const pointer = follow(code, register, through, T1, otherwise);
  verifyPointer(code, pointer, size, T1, otherwise);
  loadAt(code, { size, signed, to: T0, pointer, offset, temporary: T1 });
  return T0;
}

/** Follows references, each of which lies in what the one before points to. The last one is in x16, if there are any. */
export function follow(
  code: Assembler,
  register: number,
  through: readonly number[],
  temporary: number,
  wrong: Label,
): number {
  let pointer = register;
  for (const offset of through) {
    verifyPointer(code, pointer, 8, temporary, wrong);
    loadAt(code, { size: 8, to: T0, pointer, offset, temporary });
    pointer = T0;
  }
  return pointer;
}

/** Goes to `wrong` for a pointer that is null or no multiple of `align`. */
export function verifyPointer(code: Assembler, pointer: number, align: number, temporary: number, wrong: Label): void {
  code.branch('zero', pointer, wrong);
  if (align === 1) return;
  code.emit(andOnes(temporary, pointer, Math.log2(align)));
  code.branch('not-zero', temporary, wrong);
}

interface LoadedAt {
  readonly size: 1 | 2 | 4 | 8;
  readonly signed?: boolean;
  readonly to: number;
  readonly pointer: number;
  readonly offset: number;
  /** For offsets that no access has room for; it may be `to`, but not the pointer. */
  readonly temporary: number;
}

/** Loads from any offset. */
export function loadAt(code: Assembler, { size, signed = false, to, pointer, offset, temporary }: LoadedAt): void {
  const op = signed ? 'signed' : 'load';
  if (isNear(offset, size)) {
    code.emit(access(op, size, to, pointer, offset));
    return;
  }
  code.loadConstant(temporary, BigInt(offset));
  code.emit(add(temporary, temporary, pointer), access(op, size, to, temporary, 0));
}
