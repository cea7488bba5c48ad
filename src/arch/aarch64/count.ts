import { addOffset } from '../../base/addr.js';
import { Label } from '../inject/code-buffer.js';
import { checkBy, integer } from '../inject/integers.js';
import type { Counter } from '../inject/record-parts.js';
import {
  type Assembler,
  add,
  addi,
  and,
  asr,
  bic,
  clz,
  eor,
  eorOnes,
  ldxr,
  lsl,
  lsr,
  mov,
  orr,
  stxr,
  sub,
  T0,
  T1,
  T2,
  T3,
  T4,
} from './assembler.js';

/** Registers that {@link atomicAdd} overwrites: what was there before, and what is there now. */
interface Added {
  readonly before: number;
  readonly after: number;
  readonly status: number;
}

/** Adds to a word of memory; every processor has these instructions, and an interrupt ends the reservation. */
export function atomicAdd(code: Assembler, address: number, value: number, { before, after, status }: Added): void {
  const again = new Label();
  code.bind(again);
  code.emit(ldxr(before, address), add(after, before, value), stxr(status, after, address));
  code.branchZero('not-zero', status, again);
}

/** Adds a call to the counter's words, if its conditions hold. Overwrites x16, x17, x9, x10 and x11. */
export function countUp(code: Assembler, counter: Counter): void {
  const { at, when } = counter;
  const done = new Label();
  for (const condition of when) check(code, condition, done);
  if (counter.kind === 'calls') {
    one(code, addOffset(at, 0));
  } else {
    const value = integer(code, counter.of, done);
    if (counter.kind === 'sum') addUp(code, counter, value);
    else {
      bucket(code, value, counter.of.signed);
      code.loadAddress(T1, at);
      code.emit(lsl(T0, T0, 3), add(T0, T0, T1));
      oneAt(code, T0);
    }
  }
  code.bind(done);
}

function one(code: Assembler, at: Counter['at']): void {
  code.loadAddress(T0, at);
  oneAt(code, T0);
}

/** Overwrites x17, x9 and x10. */
function oneAt(code: Assembler, address: number): void {
  code.loadConstant(T3, 1n);
  atomicAdd(code, address, T3, { before: T1, after: T1, status: T2 });
}

/**
 * The high word changes by the carry out of the low one, and by -1 if the value is below 0: mostly not at all. The
 * carry is the highest bit of (old and value) or ((old or value) and not new).
 */
function addUp(code: Assembler, { at, of }: Counter & { readonly kind: 'sum' }, from: number): void {
  const done = new Label();
  const value = T4;
  code.emit(mov(value, from));
  one(code, at);
  code.loadAddress(T0, addOffset(at, 8));
  atomicAdd(code, T0, value, { before: T1, after: T2, status: T3 });
  code.emit(orr(T3, T1, value), bic(T3, T3, T2), and(T1, T1, value), orr(T1, T1, T3), lsr(T1, T1, 63));
  if (of.signed) code.emit(asr(T2, value, 63), add(T1, T1, T2));
  code.branchZero('zero', T1, done);
  code.emit(addi(T0, T0, 8));
  atomicAdd(code, T0, T1, { before: T2, after: T2, status: T3 });
  code.bind(done);
}

/** The bucket of a value in x16: 65 less its leading zeros; 0 below 0. Overwrites x17. */
function bucket(code: Assembler, value: number, isSigned: boolean): void {
  code.loadConstant(T1, 65n);
  if (isSigned) code.emit(asr(T2, value, 63));
  code.emit(clz(T0, value), sub(T0, T1, T0));
  if (isSigned) code.emit(bic(T0, T0, T2));
}

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
