import type { Condition } from '../inject/probe-code.js';
import { type Assembler, addiw, type Branch, type Label, slli, srai, srli, T0, T1 } from './assembler.js';
import { original, registerNamed, type TrampolineFrame } from './trampoline-frame.js';

/** Jumps to `otherwise` unless the condition holds; overwrites t0 and t1. */
export function check(assembler: Assembler, frame: TrampolineFrame, condition: Condition, otherwise: Label): void {
  const { size, signed, op, value } = condition;
  const lowest = signed ? -(1n << BigInt(8 * size - 1)) : 0n;
  const highest = lowest + (1n << BigInt(8 * size)) - 1n;
  const register = original(assembler, frame, registerNamed(condition.register), T0);
  if (value < lowest || value > highest) {
    // No integer of this type equals it; all are above or below.
    const below = value > highest;
    const holds = op === 'ne' || (below ? op === 'lt' || op === 'le' : op === 'gt' || op === 'ge');
    if (!holds) assembler.jump(otherwise);
    return;
  }
  const left = extended(assembler, register, size, signed);
  const right = value === 0n ? 0 : T1;
  if (right !== 0) assembler.loadConstant(T1, value);
  const { branch, swapped } = unless[op];
  const taken = signed || op === 'eq' || op === 'ne' ? branch : unsignedBranch[branch];
  assembler.branch(taken, swapped ? right : left, swapped ? left : right, otherwise);
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
export function extended(assembler: Assembler, register: number, size: 1 | 2 | 4 | 8, signed: boolean): number {
  if (size === 8) return register;
  if (size === 4 && signed) assembler.emit(addiw(T0, register, 0));
  else {
    const by = 64 - 8 * size;
    assembler.emit(slli(T0, register, by), (signed ? srai : srli)(T0, T0, by));
  }
  return T0;
}
