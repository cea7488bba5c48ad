import type { Condition } from '../inject/probe-code.js';
import type { Assembler, Label } from './assembler.js';
import { numberOf } from './registers.js';

/**
 * Goes to `otherwise` if the comparison of the register's low bytes with the value fails. Both are compared as
 * numbers, so a value that the size cannot hold is larger or smaller than all. Changes flags only: a value of more
 * than 32 bits is compared in memory behind the code.
 */
export function compare(code: Assembler, { register, size, signed, op, value }: Condition, otherwise: Label): void {
  const number = numberOf(register);
  if (number === undefined) throw new RangeError(`x86_64 has no register ${register} that a condition can look at`);
  const bits = 8 * size;
  const held = signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
  if (held !== value) {
    // Out of range, on the side given by its sign.
    const always = op === 'ne' || (value > 0n ? op === 'lt' || op === 'le' : op === 'gt' || op === 'ge');
    if (!always) code.jump(otherwise);
    return;
  }
  if (size === 8 && BigInt.asIntN(32, value) !== BigInt.asIntN(64, value)) {
    code.arithmetic('cmp', number, code.literal(BigInt.asUintN(64, value)));
  } else code.arithmetic('cmp', number, { constant: value }, size);
  code.branch((signed ? signedFailures : unsignedFailures)[op], otherwise);
}

const signedFailures = { eq: 'ne', ne: 'e', lt: 'ge', le: 'g', gt: 'le', ge: 'l' } as const;
const unsignedFailures = { eq: 'ne', ne: 'e', lt: 'ae', le: 'a', gt: 'be', ge: 'b' } as const;
