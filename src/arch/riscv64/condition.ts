import type { Label } from '../inject/code-buffer.js';
import { type Condition, decided, type IntegerIn } from '../inject/record-parts.js';
import { type Assembler, add, addiw, andi, type Branch, load, slli, srai, srli, T0, T1 } from './assembler.js';
import type { LoadOp } from './opcodes.js';
import { registerNamed } from './registers.js';

/** Jumps to `otherwise` unless the condition holds; overwrites t0 and t1. */
export function check(code: Assembler, condition: Condition, otherwise: Label): void {
  const { signed, op, value } = condition;
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
  const right = value === 0n ? 0 : T1;
  if (right !== 0) code.loadConstant(T1, value);
  const { branch, swapped } = unless[op];
  const taken = signed || op === 'eq' || op === 'ne' ? branch : unsignedBranch[branch];
  code.branch(taken, swapped ? right : left, swapped ? left : right, otherwise);
}

/** The register with an integer; overwrites t0 and t1. Jumps to `otherwise` if a pointer on the way leads nowhere. */
export function integer(code: Assembler, of: IntegerIn, otherwise: Label): number {
  const register = code.original(registerNamed(of.register), T0);
  return of.behind ? loaded(code, register, of, of.behind, otherwise) : extended(code, register, of.size, of.signed);
}

/** The integer behind a pointer, in t0; overwrites t1. */
function loaded(
  code: Assembler,
  register: number,
  { size, signed }: IntegerIn,
  { through, offset }: NonNullable<IntegerIn['behind']>,
  otherwise: Label,
): number {
  const pointer = follow(code, register, through, T1, otherwise);
  verifyPointer(code, pointer, size, T1, otherwise);
  loadFar(code, (signed ? signedLoads : unsignedLoads)[size], pointer, offset, T1);
  return T0;
}

const signedLoads = { 1: 'lb', 2: 'lh', 4: 'lw', 8: 'ld' } as const;
const unsignedLoads = { 1: 'lbu', 2: 'lhu', 4: 'lwu', 8: 'ld' } as const;

/** Follows references, each of which lies in what the one before points to. The last one is in t0, if there are any. */
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
    loadFar(code, 'ld', pointer, offset, temporary);
    pointer = T0;
  }
  return pointer;
}

/** Goes to `wrong` for a pointer that is null or no multiple of `align`. */
export function verifyPointer(code: Assembler, pointer: number, align: number, temporary: number, wrong: Label): void {
  code.branch('beq', pointer, 0, wrong);
  if (align === 1) return;
  code.emit(andi(temporary, pointer, align - 1));
  code.branch('bne', temporary, 0, wrong);
}

/** Loads into t0, from any offset. */
function loadFar(code: Assembler, op: LoadOp, pointer: number, offset: number, temporary: number): void {
  if (offset < 2048) {
    code.emit(load(op, T0, pointer, offset));
    return;
  }
  code.loadConstant(temporary, BigInt(offset));
  code.emit(add(temporary, temporary, pointer), load(op, T0, temporary, 0));
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

/** The low bytes of a register as 64 bits; in t0 if they are not the whole register. */
function extended(code: Assembler, register: number, size: 1 | 2 | 4 | 8, signed: boolean): number {
  if (size === 8) return register;
  if (size === 4 && signed) code.emit(addiw(T0, register, 0));
  else {
    const by = 64 - 8 * size;
    code.emit(slli(T0, register, by), (signed ? srai : srli)(T0, T0, by));
  }
  return T0;
}
