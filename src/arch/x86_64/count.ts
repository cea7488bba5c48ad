import { addOffset } from '../../base/addr.js';
import { Label } from '../inject/code-buffer.js';
import type { Counter, IntegerIn } from '../inject/record-parts.js';
import type { Assembler } from './assembler.js';
import { compare, follow, verifyPointer } from './condition.js';
import { RAX, RCX, RSP } from './registers.js';
import { general } from './stack.js';

/** Adds a call to the counter's words, if its conditions hold. All registers keep the function's values. */
export function countUp(code: Assembler, counter: Counter): void {
  const skip = new Label();
  for (const condition of counter.when) compare(code, condition, skip);
  if (counter.kind === 'calls') code.increment({ at: counter.at });
  else countNumber(code, counter);
  code.bind(skip);
}

function countNumber(code: Assembler, counter: Exclude<Counter, { readonly kind: 'calls' }>): void {
  const done = new Label();
  code.push(RAX);
  code.push(RCX);
  loadInteger(code, counter.of, done);
  if (counter.kind === 'sum') addUp(code, counter, done);
  else {
    bucket(code, counter.of.signed);
    code.address(RAX, { at: counter.at });
    code.increment({ base: RAX, offset: 0, index: RCX, scale: 8 });
  }
  code.bind(done);
  code.pop(RCX);
  code.pop(RAX);
}

/** The integer in rax. Goes to `otherwise` if a pointer on the way leads nowhere. */
function loadInteger(code: Assembler, { register, size, signed, behind }: IntegerIn, otherwise: Label): void {
  const number = general(register);
  if (number === RSP) throw new RangeError('What lies in rsp is not counted by');
  if (!behind) {
    code.extend(RAX, number, size, signed);
    return;
  }
  const pointer = follow(code, number, behind.through, RAX, otherwise);
  verifyPointer(code, pointer, size, otherwise);
  code.load(RAX, { base: pointer, offset: behind.offset }, size);
  if (signed) code.extend(RAX, RAX, size, true);
}

/**
 * Adds rax. The high word changes by the carry out of the low one, and by -1 if the integer is below 0: mostly not at
 * all.
 */
function addUp(code: Assembler, { at, of }: Counter & { readonly kind: 'sum' }, done: Label): void {
  code.increment({ at });
  if (of.signed) {
    code.move(RCX, RAX);
    code.shift('signed right', RCX, 63);
  } else code.constant(RCX, 0n);
  code.addAtOnce({ at: addOffset(at, 8) }, RAX);
  code.arithmetic('adc', RCX, { constant: 0n });
  code.branch('e', done);
  code.addAtOnce({ at: addOffset(at, 16) }, RCX);
}

/** The bucket of rax in rcx. */
function bucket(code: Assembler, signed: boolean): void {
  const found = new Label();
  code.test(RAX, RAX);
  if (signed) {
    code.constant(RCX, 0n);
    code.branch('s', found);
  }
  code.constant(RCX, 1n);
  code.branch('e', found);
  code.highestBit(RCX, RAX);
  code.arithmetic('add', RCX, { constant: 2n });
  code.bind(found);
}
