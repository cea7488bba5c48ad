import type { Addr } from '../../base/addr.js';
import { pendingOf, type TimeField, timeField } from '../inject/pending-call.js';
import { controlBlock, headFlag, type RingGeometry } from '../inject/probe-code.js';
import {
  Assembler,
  addi,
  amoaddD,
  andi,
  jalr,
  type Label,
  ld,
  scDRelease,
  sd,
  sub,
  T0,
  T1,
  T2,
  T3,
  T4,
  T5,
} from './assembler.js';
import {
  CLAIM,
  claim,
  claimRarely,
  commit,
  exchangeHead,
  fillFields,
  inOrder,
  LINK,
  putField,
  type RecordCode,
  segmentOf,
  slotOf,
  sourceValue,
} from './record-code.js';
import { SP } from './registers.js';
import { original, type TrampolineFrame } from './trampoline-frame.js';

/**
 * Calls that pend, as `PendingCall` draws it. ABA: HEAD may repeat while calls pend and vanish, but never with the
 * same claim. Only the locker clears `locked`; only the owning call clears `pending`. So each exchange of HEAD is
 * safe.
 */
const toPending = headFlag.pending - headFlag.locked;

/** Makes space in the trampoline's code: called last. */
export type Rarely = () => void;

/** An entry's record, pending or claimed. In: t0 = the control block's address. Clobbers t0 to t3. */
export function pend(assembler: Assembler, frame: TrampolineFrame, record: RecordCode, dropped: Label): Rarely {
  const { ring, fields } = record;
  const pending = pendingOf(ring);
  const time = timeField(fields);
  const [again, flagged, lost, fill] = [assembler.label(), assembler.label(), assembler.label(), assembler.label()];
  const [publish, overtaken, claimed, done] = [
    assembler.label(),
    assembler.label(),
    assembler.label(),
    assembler.label(),
  ];
  assembler.place(again);
  assembler.emit(ld(T1, T0, controlBlock.head), andi(T3, T1, headFlag.pending | headFlag.locked));
  assembler.branch('bne', T3, 0, flagged);
  exchangeHead(assembler, T3, headFlag.locked, lost);
  assembler.loadAddress(T2, pending.record);
  // No claim is 0.
  assembler.emit(addi(T1, 0, 0));
  assembler.place(fill);
  fillFields(assembler, frame, { ...record, fields: fields.filter((field) => field !== time) });
  assembler.branch('bne', T1, 0, claimed);
  assembler.emit(sd(original(assembler, frame, SP, T3), T2, 0));
  assembler.loadAddress(T0, ring.control);
  assembler.place(publish);
  assembler.emit(ld(T1, T0, controlBlock.head));
  putField(assembler, frame, time);
  exchangeHead(assembler, T3, toPending, overtaken);
  assembler.place(done);
  return () => {
    assembler.place(overtaken);
    assembler.emit(scDRelease(0, T3, T0));
    assembler.jump(publish);
    assembler.place(lost);
    assembler.emit(scDRelease(0, T3, T0));
    assembler.jump(again);
    assembler.place(claimed);
    putField(assembler, frame, time);
    commit(assembler);
    assembler.jump(done);
    assembler.place(flagged);
    const labels = claim(assembler, ring);
    assembler.jump(fill);
    claimRarely(assembler, ring, labels, dropped, again);
  };
}

/**
 * At an exit: goes to `vanished` if the call still pends and was short. In: t0 = the control block's address, which
 * is kept.
 */
export function vanish(
  assembler: Assembler,
  frame: TrampolineFrame,
  { ring, fields }: RecordCode,
  below: bigint,
  vanished: Label,
): Rarely {
  const pending = pendingOf(ring);
  const time = timeField(fields);
  const [look, moved, record] = [assembler.label(), assembler.label(), assembler.label()];
  assembler.place(look);
  assembler.emit(ld(T1, T0, controlBlock.head), andi(T3, T1, headFlag.pending));
  assembler.branch('beq', T3, 0, record);
  assembler.loadAddress(T2, pending.record);
  assembler.emit(ld(T3, T2, 0), addi(T3, T3, -frame.depth));
  assembler.branch('bne', T3, SP, record);
  putTime(assembler, frame, time);
  assembler.emit(ld(T2, T2, time.at), sub(T3, T3, T2));
  assembler.loadConstant(T2, below);
  assembler.branch('bgeu', T3, T2, record);
  exchangeHead(assembler, T3, -headFlag.pending, moved);
  assembler.jump(vanished);
  assembler.place(record);
  return () => {
    assembler.place(moved);
    assembler.emit(scDRelease(0, T3, T0));
    assembler.jump(look);
  };
}

/** Stores the time in t3 and in the control block. */
function putTime(assembler: Assembler, frame: TrampolineFrame, { from }: TimeField): void {
  assembler.emit(sd(sourceValue(assembler, frame, from), T0, controlBlock.ended));
}

/**
 * In: t0 = the control block's address, t1 = HEAD (pending bit set, room available), t3 = return address. Moves the
 * pending record into the ring unless another writer did, and returns to t3. Clobbers t1 and t2; saves t4 and t5.
 */
export function flush(at: Addr, ring: Omit<RingGeometry, 'wait'>): Uint8Array {
  const { record } = pendingOf(ring);
  const assembler = new Assembler(at);
  const [moved, done] = [assembler.label(), assembler.label()];
  const slot = 2 ** ring.slotShift;
  assembler.emit(addi(SP, SP, -16), sd(T4, SP, 0), sd(T5, SP, 8));
  inOrder(assembler);
  segmentOf(assembler, ring);
  exchangeHead(assembler, T4, slot - toPending, moved);
  assembler.emit(andi(T1, T1, CLAIM));
  slotOf(assembler, ring, T5);
  assembler.loadAddress(T4, record);
  for (let word = 8; word < slot; word += 8) assembler.emit(ld(T5, T4, word), sd(T5, T2, word));
  commit(assembler);
  assembler.emit(addi(T5, 0, -headFlag.locked), amoaddD(0, T5, T0));
  assembler.place(done);
  assembler.emit(ld(T4, SP, 0), ld(T5, SP, 8), addi(SP, SP, 16), jalr(0, LINK, 0));
  assembler.place(moved);
  assembler.emit(scDRelease(0, T4, T0));
  assembler.jump(done);
  return assembler.finish();
}
