import { addOffset } from '../../base/addr.js';
import type { ProbeCode } from '../inject/probe-code.js';
import { checkRecord } from '../inject/record-parts.js';
import type { FrameNote, FrameNotes, InnerTrampoline, PointerPlace } from '../inject/trampolines.js';
import {
  Assembler,
  add,
  addi,
  andi,
  cAddiSp,
  cSdsp0,
  ld,
  sd,
  slli,
  srli,
  T0,
  T1,
  T2,
  T3,
  xor,
  xori,
} from './assembler.js';
import { endHop, HOP_BACK, HOP_FRAME } from './patch.js';
import { claim, claimRarely, fillRecord, loadAt, mostShifts } from './record-code.js';
import { SP } from './registers.js';
import {
  hookFrameSize,
  moveStack,
  original,
  registerNamed,
  restore,
  save,
  slots,
  type TrampolineFrame,
} from './trampoline-frame.js';

/** A trampoline inside a function. Its taken words lie where a hooked call's kept words would be. */
export function inner(trampoline: InnerTrampoline): ReturnType<ProbeCode['inner']> {
  const { at, ring, fields, displaced, notes, taken, noted, via } = trampoline;
  const record = { ring, fields, outerCopy: undefined };
  checkRecord(record, mostShifts);
  const assembler = new Assembler(at);
  const { saved, size } = slots(false);
  const depth = size + hookFrameSize(taken.length, false);
  const lost = displaced.through === undefined ? undefined : registerNamed(displaced.through);
  const frame: TrampolineFrame = { saved, frame: size, kept: taken.length, depth, lost };
  const dropped = assembler.label();
  const used = [T0, T1, T2, T3];
  if (via !== 'patch') endHop(assembler);
  assembler.raw(displaced.before(assembler.here));
  const place = Number(assembler.here - at);
  moveStack(assembler, -depth);
  save(assembler, frame, used);
  for (const [index, note] of taken.entries()) {
    take(assembler, frame, note, notes);
    assembler.emit(sd(T0, SP, size + 8 * index));
  }
  assembler.loadAddress(T0, ring.control);
  const labels = claim(assembler, ring);
  fillRecord(assembler, frame, record);
  assembler.place(dropped);
  for (const note of noted) put(assembler, frame, note, notes);
  restore(assembler, frame, used);
  moveStack(assembler, depth);
  if (via === 'patch') assembler.raw(displaced.relocate(assembler.here));
  else {
    assembler.emitCompressed(cAddiSp(-HOP_FRAME), cSdsp0(T0));
    assembler.jumpFar(addOffset(via.hop, HOP_BACK), T0);
  }
  claimRarely(assembler, ring, labels, dropped);
  return { code: assembler.finish(), place };
}

/** Clobbers t3 if the offset is large. */
function value(
  assembler: Assembler,
  frame: TrampolineFrame,
  { register, offset, through }: PointerPlace,
  to: number,
): void {
  let from = original(assembler, frame, registerNamed(register), to);
  if (through !== undefined) {
    loadAt(assembler, 8, to, from, through);
    from = to;
  }
  if (offset >= -2048 && offset < 2048) {
    if (from !== to || offset !== 0) assembler.emit(addi(to, from, offset));
    return;
  }
  assembler.loadConstant(T3, BigInt(offset));
  assembler.emit(add(to, from, T3));
}

/** Out: t2 = the frame and the number, t1 = the entry. Clobbers t0 and t3. */
function find(
  assembler: Assembler,
  frame: TrampolineFrame,
  { of, frame: place }: FrameNote,
  { at, countShift }: FrameNotes,
): void {
  value(assembler, frame, place, T1);
  assembler.loadConstant(T2, BigInt(of) << 48n);
  assembler.emit(xor(T2, T2, T1));
  // Frames are multiples of 16. Stacks of threads often lie at equal distances.
  assembler.emit(srli(T1, T1, 4), srli(T3, T1, 8), xor(T1, T1, T3), srli(T3, T3, 4), xor(T1, T1, T3));
  if (of % 128 !== 0) assembler.emit(xori(T1, T1, of % 128));
  assembler.emit(andi(T1, T1, 2 ** countShift - 1), slli(T1, T1, 4));
  assembler.loadAddress(T3, at);
  assembler.emit(add(T1, T1, T3));
}

/** Takes a noted pointer into t0. */
function take(assembler: Assembler, frame: TrampolineFrame, note: FrameNote, notes: FrameNotes): void {
  const [fits, done] = [assembler.label(), assembler.label()];
  find(assembler, frame, note, notes);
  assembler.emit(ld(T0, T1, 8), xor(T2, T2, T0), ld(T3, T1, 0));
  assembler.branch('beq', T2, T3, fits);
  assembler.emit(addi(T0, 0, 0));
  assembler.jump(done);
  assembler.place(fits);
  assembler.emit(sd(0, T1, 0));
  assembler.place(done);
}

function put(
  assembler: Assembler,
  frame: TrampolineFrame,
  note: InnerTrampoline['noted'][number],
  notes: FrameNotes,
): void {
  find(assembler, frame, note, notes);
  value(assembler, frame, note.pointer, T0);
  assembler.emit(sd(T0, T1, 8), xor(T2, T2, T0), sd(T2, T1, 0));
}
