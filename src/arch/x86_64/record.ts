import { Label } from '../inject/code-buffer.js';
import { checkRecord, type ExtentCopy, type OuterCopy, type RecordContents } from '../inject/record-parts.js';
import { controlBlock, type RingGeometry } from '../inject/ring-contract.js';
import type { Assembler } from './assembler.js';
import { follow, verifyPointer } from './condition.js';
import { controlWord, outerWords, writeFields } from './fields.js';
import { R10, R11, RAX, RBX, RCX, RDX, RSI } from './registers.js';
import { fetch, general, onStack, type Stack } from './stack.js';

/** The registers that {@link writeExtents} overwrites. */
const extentRegisters = [RAX, RCX, RDX, RSI] as const;

/**
 * Copies extents into the record at r11. No branch depends on the number of bytes, so that each record takes as many
 * instructions. A word behind the end is loaded from the record instead. rdx = the word's place, rcx = the end.
 */
function writeExtents(code: Assembler, extents: readonly ExtentCopy[], stack: Stack): void {
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

/** The largest sizes of a slot and of a segment. */
const mostShifts = { slotShift: 30, segmentShift: 31 } as const;

/** The registers that must be pushed before. */
export function toPush({ fields, outerCopy, extents = [] }: RecordContents): number[] {
  const push = new Set([RAX, R10, R11]);
  if (fields.some(({ from }) => from.kind === 'time')) push.add(RDX);
  if (fields.some(({ from }) => from.kind === 'hart' && from.how === 'apic'))
    for (const used of [RBX, RCX, RDX]) push.add(used);
  if (extents.length > 0) for (const number of extentRegisters) push.add(number);
  if (outerCopy !== undefined) for (const number of [RCX, RDX, RSI]) push.add(number);
  if (fields.some(({ from }) => from.kind === 'load' && (from.base.through?.length || onStack(from.base, push))))
    push.add(RDX);
  return [...push];
}

/** Places that the rare ways of a claim lead from and to. */
class ClaimLabels {
  readonly again = new Label();
  /** The ring is full. In: rax = HEAD. */
  readonly full = new Label();
}

/**
 * Writes one record into the ring. All registers but the pushed ones keep the function's values:
 *
 *     rax  HEAD, then scratch     r10  the claim     r11  the record
 *     rdx  time, and a pointer that is on the stack     rcx, rsi  copying the outer poll's bytes, and extents
 *     rbx, rcx, rdx  which processor it is
 *
 * An interrupt may come between any two instructions, write below rsp, run other trampolines and never return. So
 * nothing is kept below rsp, and only registers and this stack are ever in an intermediate state.
 */
export function writeRecord(code: Assembler, contents: RecordContents, stack: Stack): ClaimLabels {
  const { ring, fields, outerCopy, extents = [] } = contents;
  checkRecord(contents, mostShifts);
  const labels = claim(code, ring);
  writeFields(code, fields, ring, stack);
  writeExtents(code, extents, stack);
  if (outerCopy !== undefined) copyOuter(code, ring, outerCopy, stack);
  code.store({ base: R11, offset: 0 }, R10);
  return labels;
}

/**
 * Out: r10 = the claim, r11 = the record's address. The processor keeps loads in order, and stores too, so no barrier
 * is needed.
 */
function claim(code: Assembler, ring: RingGeometry): ClaimLabels {
  const labels = new ClaimLabels();
  const head = controlWord(ring, controlBlock.head);
  code.bind(labels.again);
  code.load(RAX, head);
  code.arithmetic('cmp', RAX, controlWord(ring, controlBlock.limit));
  code.branch('ae', labels.full);
  // Its segment's address.
  code.move(R10, RAX);
  code.shift('right', R10, ring.segmentShift);
  code.arithmetic('and', R10, { constant: BigInt((1 << ring.countShift) - 1) });
  code.address(R11, controlWord(ring, controlBlock.segments));
  code.load(R11, { base: R11, offset: 0, index: R10, scale: 8 });
  code.address(R10, { base: RAX, offset: 2 ** ring.slotShift });
  code.compareExchange(head, R10);
  code.branch('ne', labels.again);
  code.move(R10, RAX);
  code.arithmetic('and', RAX, { constant: (1n << BigInt(ring.segmentShift)) - 1n }, 4);
  code.arithmetic('add', R11, RAX);
  return labels;
}

/**
 * The rare way of a claim. The ring is full: waits. Goes on behind itself if the event is dropped.
 */
export function claimRarely(code: Assembler, ring: RingGeometry, labels: ClaimLabels): void {
  // The wait routine returns to the jump, or behind it.
  const back = new Label();
  code.bind(labels.full);
  code.address(R11, { at: back });
  code.jump(ring.wait);
  code.bind(back);
  code.jump(labels.again);
}

/** See `ProbeCode.outerCopySteps`: the instructions of {@link copyOuter}. */
export const outerCopySteps = { beforeTime: false, closed: 3, listed: 9, each: 5 } as const;

/**
 * The last byte first. Another poll may open and end in between, but `outer` is set only after `outerPlan` belongs to
 * it.
 */
function copyOuter(code: Assembler, ring: RingGeometry, { at, room, self }: OuterCopy, stack: Stack): void {
  const nothing = new Label();
  const next = new Label();
  const outer = outerWords(ring);
  code.load(RAX, outer.self);
  code.test(RAX, RAX);
  code.branch('e', nothing);
  code.load(RDX, outer.plan);
  if (ring.outer) {
    code.address(RSI, { at: ring.outer.plans.at });
    code.move(RCX, RDX);
    code.arithmetic('sub', RCX, RSI);
    code.arithmetic('cmp', RCX, { constant: BigInt(ring.outer.plans.bytes) });
    code.branch('ae', nothing);
  }
  code.load(RCX, { base: RDX, offset: 0 }, 4);
  code.arithmetic('cmp', RCX, { constant: BigInt(room) }, 4);
  code.branch('a', nothing);
  code.test(RCX, RCX);
  code.branch('e', nothing);
  if (self !== undefined && ring.outer) {
    const pointer = fetch(code, general(self), stack, RSI);
    if (pointer !== RSI) code.move(RSI, pointer);
    code.arithmetic('sub', RSI, RAX);
    code.arithmetic('cmp', RSI, { base: RDX, offset: 4, index: RCX, scale: 4 });
    code.branch('ae', nothing);
  }
  code.bind(next);
  code.load(RSI, { base: RDX, offset: 0, index: RCX, scale: 4 }, 4);
  code.load(RSI, { base: RAX, offset: 0, index: RSI }, 1);
  code.store({ base: R11, offset: at - 1, index: RCX }, RSI, 1);
  code.decrement(RCX);
  code.branch('ne', next);
  code.bind(nothing);
}
