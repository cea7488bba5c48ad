import { controlBlock, type RingGeometry } from '../inject/ring-contract.js';
import type { Assembler } from './assembler.js';
import { controlWord, readTime } from './fields.js';
import { RAX, RDX, RSP } from './registers.js';

/**
 * What a wait for room adds to `waited`. Both keep all registers.
 *
 *      rsp + 0: when it began | 8: rax | 16: rdx
 */
export function beginWait(code: Assembler, counter: string): void {
  code.push(RDX);
  code.push(RAX);
  readTime(code, counter);
  code.push(RAX);
  code.load(RAX, { base: RSP, offset: 8 });
  code.load(RDX, { base: RSP, offset: 16 });
}

export function endWait(code: Assembler, ring: Omit<RingGeometry, 'wait'>, counter: string): void {
  code.store({ base: RSP, offset: 8 }, RAX);
  code.store({ base: RSP, offset: 16 }, RDX);
  readTime(code, counter);
  code.arithmetic('sub', RAX, { base: RSP, offset: 0 });
  code.addAtOnce(controlWord(ring, controlBlock.waited), RAX);
  code.moveStack(8);
  code.pop(RAX);
  code.pop(RDX);
}
