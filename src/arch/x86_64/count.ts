import type { Counter } from '../inject/probe-code.js';
import { type Assembler, Label } from './assembler.js';
import { RAX, RCX, RSP } from './registers.js';
import { general } from './stack.js';

/**
 * Adds one to a counter, or to the counter of a histogram that the register selects. All registers keep the
 * function's values.
 */
export function countUp(code: Assembler, { at, by }: Counter): void {
  if (by === undefined) {
    code.increment({ at });
    return;
  }
  const number = general(by.register);
  if (number === RSP) throw new RangeError('A histogram is not of rsp');
  const found = new Label();
  code.push(RAX);
  code.push(RCX);
  code.extend(RAX, number, by.size, by.signed);
  code.test(RAX, RAX);
  if (by.signed) {
    code.constant(RCX, 0n);
    code.branch('s', found);
  }
  code.constant(RCX, 1n);
  code.branch('e', found);
  code.highestBit(RCX, RAX);
  code.arithmetic('add', RCX, { constant: 2n });
  code.bind(found);
  code.address(RAX, { at });
  code.increment({ base: RAX, offset: 0, index: RCX, scale: 8 });
  code.pop(RCX);
  code.pop(RAX);
}
