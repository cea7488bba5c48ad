import { Label } from '../inject/code-buffer.js';
import type { ProbeCode } from '../inject/probe-code.js';
import type { FrameNote, FrameNotes, InnerTrampoline, PointerPlace } from '../inject/trampolines.js';
import { Assembler } from './assembler.js';
import { claimRarely, toPush, writeRecord } from './record.js';
import { R10, R11, RAX, RSP } from './registers.js';
import { fetch, general, type Stack } from './stack.js';

/** A function that calls nothing may use so many bytes below its stack pointer (psABI 3.2.2). */
const redZone = 128;

/**
 * A trampoline inside a function, where flags and every register may be in use. Its stack, from rsp up:
 *
 *     pushed registers | flags | taken words | red zone of the function
 */
export function inner(trampoline: InnerTrampoline): ReturnType<ProbeCode['inner']> {
  const { at, ring, fields, displaced, notes, taken, noted, via } = trampoline;
  if (via !== 'patch') throw new RangeError('No patch for x86_64 needs a hop');
  const code = new Assembler(at);
  code.raw(displaced.before(code.here));
  const place = Number(code.here - at);
  const contents = { ring, fields, outerCopy: undefined };
  const pushed = toPush(contents);
  const frame = redZone + 8 * taken.length;
  const words = 8 * (pushed.length + 1);
  const kept = taken.map((_, index) => words + 8 * index);
  const stack: Stack = { pushed, returnAddress: words + frame, stackPointer: words + frame, kept };
  const done = new Label();
  code.moveStack(-frame);
  code.plain('pushfq');
  for (const number of pushed) code.push(number);
  for (const [index, note] of taken.entries()) {
    take(code, note, notes, stack);
    code.store({ base: RSP, offset: kept[index] ?? 0 }, RAX);
  }
  const labels = writeRecord(code, contents, stack);
  code.bind(done);
  for (const note of noted) put(code, note, notes, stack);
  for (const number of pushed.toReversed()) code.pop(number);
  code.plain('popfq');
  code.moveStack(frame);
  code.raw(displaced.relocate(code.here));
  claimRarely(code, ring, labels);
  code.jump(done);
  return { code: code.finish(), place };
}

/** Into rax. */
function value(code: Assembler, { register, offset, through }: PointerPlace, stack: Stack): void {
  let number = fetch(code, general(register), stack, RAX);
  if (through !== undefined) {
    code.load(RAX, { base: number, offset: through });
    number = RAX;
  }
  if (number !== RAX || offset !== 0) code.address(RAX, { base: number, offset });
}

/** Out: r10 = the frame and the number, r11 = the entry. Clobbers rax. */
function find(code: Assembler, { of, frame }: FrameNote, { at, countShift }: FrameNotes, stack: Stack): void {
  value(code, frame, stack);
  code.constant(R10, BigInt(of) << 48n);
  code.arithmetic('xor', R10, RAX);
  // Frames are multiples of 16. Stacks of threads often lie at equal distances.
  code.shift('right', RAX, 4);
  code.move(R11, RAX);
  code.shift('right', R11, 8);
  code.arithmetic('xor', RAX, R11);
  code.shift('right', R11, 4);
  code.arithmetic('xor', RAX, R11);
  if (of % 128 !== 0) code.arithmetic('xor', RAX, { constant: BigInt(of % 128) });
  code.arithmetic('and', RAX, { constant: BigInt(2 ** countShift - 1) });
  code.shift('left', RAX, 4);
  code.address(R11, { at });
  code.arithmetic('add', R11, RAX);
}

/** Takes a noted pointer into rax. */
function take(code: Assembler, note: FrameNote, notes: FrameNotes, stack: Stack): void {
  const [fits, done] = [new Label(), new Label()];
  find(code, note, notes, stack);
  code.load(RAX, { base: R11, offset: 8 });
  code.arithmetic('xor', R10, RAX);
  code.arithmetic('cmp', R10, { base: R11, offset: 0 });
  code.branch('e', fits);
  code.constant(RAX, 0n);
  code.jump(done);
  code.bind(fits);
  code.storeConstant({ base: R11, offset: 0 }, 0n, 8);
  code.bind(done);
}

function put(code: Assembler, note: InnerTrampoline['noted'][number], notes: FrameNotes, stack: Stack): void {
  find(code, note, notes, stack);
  value(code, note.pointer, stack);
  code.store({ base: R11, offset: 8 }, RAX);
  code.arithmetic('xor', R10, RAX);
  code.store({ base: R11, offset: 0 }, R10);
}
