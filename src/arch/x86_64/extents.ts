import { Label } from '../inject/code-buffer.js';
import type { ExtentCopy } from '../inject/record-parts.js';
import type { Assembler } from './assembler.js';
import { follow, verifyPointer } from './condition.js';
import { R11, RAX, RCX, RDX, RSI } from './registers.js';
import { fetch, general, type Stack } from './stack.js';

/** The registers that {@link writeExtents} overwrites. */
export const extentRegisters = [RAX, RCX, RDX, RSI] as const;

/**
 * Copies extents into the record at r11. No branch depends on the number of bytes, so that each record takes as many
 * instructions. A word behind the end is loaded from the record instead. rdx = the word's place, rcx = the end.
 */
export function writeExtents(code: Assembler, extents: readonly ExtentCopy[], stack: Stack): void {
  for (const extent of extents) writeExtent(code, extent, stack);
}

function writeExtent(code: Assembler, { at, words, shift, from }: ExtentCopy, stack: Stack): void {
  const done = new Label();
  if (from.kind === 'registers') {
    moveTo(code, RDX, fetch(code, general(from.pointer), stack, RDX));
    moveTo(code, RCX, fetch(code, general(from.count), stack, RCX));
  } else {
    const pointer = follow(code, fetch(code, general(from.register), stack, RSI), from.through, RSI, done);
    verifyPointer(code, pointer, 8, done);
    code.load(RCX, { base: pointer, offset: from.count });
    code.load(RDX, { base: pointer, offset: from.pointer });
  }
  if (shift > 0) code.shift('left', RCX, shift);
  // All ones where both are not 0: 0 - 1 borrows.
  code.arithmetic('cmp', RDX, { constant: 1n });
  code.arithmetic('sbb', RAX, RAX);
  code.arithmetic('cmp', RCX, { constant: 1n });
  code.arithmetic('sbb', RSI, RSI);
  code.arithmetic('or', RAX, RSI);
  code.arithmetic('xor', RAX, { constant: -1n });
  code.arithmetic('add', RCX, RDX);
  code.arithmetic('and', RCX, RAX);
  code.arithmetic('and', RDX, { constant: -8n });
  for (let word = 0; word < words; word++) {
    code.arithmetic('cmp', RDX, RCX);
    code.arithmetic('sbb', RAX, RAX);
    code.move(RSI, RDX);
    code.arithmetic('sub', RSI, R11);
    code.arithmetic('and', RSI, RAX);
    code.arithmetic('add', RSI, R11);
    code.load(RAX, { base: RSI, offset: 0 });
    code.store({ base: R11, offset: at + 8 * word }, RAX);
    code.arithmetic('add', RDX, { constant: 8n });
  }
  code.bind(done);
}

function moveTo(code: Assembler, to: number, from: number): void {
  if (from !== to) code.move(to, from);
}
