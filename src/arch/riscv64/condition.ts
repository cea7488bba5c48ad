import { checkBy } from '../inject/integers.js';
import { type Assembler, type Branch, T1 } from './assembler.js';

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
