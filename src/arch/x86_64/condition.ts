import { Label } from '../inject/code-buffer.js';
import { type Condition, decided } from '../inject/record-parts.js';
import type { Assembler } from './assembler.js';
import { numberOf, RAX, RSP } from './registers.js';

/**
 * Goes to `otherwise` if the comparison of the register's low bytes with the value fails. Both are compared as
 * numbers, so a value that the size cannot hold is larger or smaller than all. Changes flags only: a value of more
 * than 32 bits is compared in memory behind the code.
 */
export function compare(code: Assembler, condition: Condition, otherwise: Label): void {
  const { register, size, signed, op, value, behind } = condition;
  const number = numberOf(register);
  if (number === undefined) throw new RangeError(`x86_64 has no register ${register} that a condition can look at`);
  const always = decided(condition);
  if (always !== undefined) {
    if (!always) code.jump(otherwise);
    // There must be an integer all the same.
    else if (behind) loadCompared(code, number, { ...condition, value: 0n }, behind, otherwise);
    return;
  }
  if (behind) loadCompared(code, number, condition, behind, otherwise);
  else compareWith(code, number, value, size);
  code.branch((signed ? signedFailures : unsignedFailures)[op], otherwise);
}

function compareWith(code: Assembler, number: number, value: bigint, size: Condition['size']): void {
  if (size === 8 && BigInt.asIntN(32, value) !== BigInt.asIntN(64, value)) {
    code.arithmetic('cmp', number, code.literal(BigInt.asUintN(64, value)));
  } else code.arithmetic('cmp', number, { constant: value }, size);
}

/** Compares what lies behind a pointer. rax keeps its value, and its pop changes no flags. */
function loadCompared(
  code: Assembler,
  number: number,
  { size, value }: Condition,
  { through, offset }: NonNullable<Condition['behind']>,
  otherwise: Label,
): void {
  if (number === RSP) throw new RangeError('rsp is no reference');
  const [wrong, compared] = [new Label(), new Label()];
  code.push(RAX);
  const pointer = follow(code, number, through, RAX, wrong);
  verifyPointer(code, pointer, size, wrong);
  code.load(RAX, { base: pointer, offset }, size);
  compareWith(code, RAX, value, size);
  code.pop(RAX);
  code.jump(compared);
  code.bind(wrong);
  code.pop(RAX);
  code.jump(otherwise);
  code.bind(compared);
}

/** Follows references, each of which lies in what the one before points to. The last one of any is in `to`. */
export function follow(
  code: Assembler,
  register: number,
  through: readonly number[],
  to: number,
  wrong: Label,
): number {
  let pointer = register;
  for (const offset of through) {
    verifyPointer(code, pointer, 8, wrong);
    code.load(to, { base: pointer, offset });
    pointer = to;
  }
  return pointer;
}

/** Goes to `wrong` for a pointer that is null or no multiple of `align`. */
export function verifyPointer(code: Assembler, pointer: number, align: number, wrong: Label): void {
  code.test(pointer, pointer);
  code.branch('e', wrong);
  if (align === 1) return;
  code.testConstant(pointer, align - 1);
  code.branch('ne', wrong);
}

const signedFailures = { eq: 'ne', ne: 'e', lt: 'ge', le: 'g', gt: 'le', ge: 'l' } as const;
const unsignedFailures = { eq: 'ne', ne: 'e', lt: 'ae', le: 'a', gt: 'be', ge: 'b' } as const;
