import { addOffset } from '../../base/addr.js';
import { Label } from '../inject/code-buffer.js';
import { checkBy, integer } from '../inject/integers.js';
import type { Counter } from '../inject/record-parts.js';
import { type Assembler, add, addi, amoaddD, type Branch, slli, sltu, srai, srli, T0, T1, T2 } from './assembler.js';

/** Adds a call to the counter's words, if its conditions hold. Overwrites t0, t1 and, if not only calls count, t2. */
export function countUp(code: Assembler, counter: Counter): void {
  const { at, when } = counter;
  const done = new Label();
  for (const condition of when) check(code, condition, done);
  const value = counter.kind === 'calls' ? 0 : integer(code, counter.of, done);
  if (counter.kind === 'sum') addUp(code, counter, value, done);
  else if (counter.kind === 'calls') {
    code.loadAddress(T0, at);
    code.emit(addi(T1, 0, 1), amoaddD(0, T1, T0));
  } else {
    if (value !== T0) code.emit(addi(T0, value, 0));
    bucket(code, counter.of.signed);
    code.emit(slli(T1, T1, 3));
    code.loadAddress(T0, at);
    code.emit(add(T0, T0, T1), addi(T1, 0, 1), amoaddD(0, T1, T0));
  }
  code.bind(done);
}

/** The high word changes by the carry out of the low one, and by -1 if the value is below 0: mostly not at all. */
function addUp(code: Assembler, { at, of }: Counter & { readonly kind: 'sum' }, value: number, done: Label): void {
  code.loadAddress(T1, at);
  code.emit(addi(T2, 0, 1), amoaddD(0, T2, T1));
  code.loadAddress(T1, addOffset(at, 8));
  code.emit(amoaddD(T2, value, T1), add(T2, T2, value), sltu(T2, T2, value));
  if (of.signed) code.emit(srai(T0, value, 63), add(T2, T2, T0));
  code.branch('beq', T2, 0, done);
  code.emit(addi(T1, T1, 8), amoaddD(0, T2, T1));
}

/** The bucket of t0 in t1. */
function bucket(code: Assembler, signed: boolean): void {
  const found = new Label();
  code.emit(addi(T1, 0, 0));
  if (signed) code.branch('blt', T0, 0, found);
  code.emit(addi(T1, 0, 1));
  code.branch('beq', T0, 0, found);
  code.emit(addi(T1, 0, 2));
  for (const half of [32, 16, 8, 4, 2, 1]) {
    const below = new Label();
    code.emit(srli(T2, T0, half));
    code.branch('beq', T2, 0, below);
    code.emit(addi(T0, T2, 0), addi(T1, T1, half));
    code.bind(below);
  }
  code.bind(found);
}

/** The branch that is taken if the comparison does not hold. */
const unless = {
  eq: { branch: 'bne', swapped: false },
  ne: { branch: 'beq', swapped: false },
  lt: { branch: 'bge', swapped: false },
  ge: { branch: 'blt', swapped: false },
  gt: { branch: 'bge', swapped: true },
  le: { branch: 'blt', swapped: true },
} as const;
const unsignedBranch: Readonly<Record<'bge' | 'blt' | 'beq' | 'bne', Branch>> = {
  bge: 'bgeu',
  blt: 'bltu',
  beq: 'beq',
  bne: 'bne',
};

/** Overwrites t0 and t1. */
export const check = checkBy<Assembler>((code, { signed, op, value }, left, otherwise) => {
  const right = value === 0n ? 0 : T1;
  if (right !== 0) code.loadConstant(T1, value);
  const { branch, swapped } = unless[op];
  const taken = signed || op === 'eq' || op === 'ne' ? branch : unsignedBranch[branch];
  code.branch(taken, swapped ? right : left, swapped ? left : right, otherwise);
});
