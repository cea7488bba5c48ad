import type { Addr } from '../../base/addr.js';
import { pendingOf, type TimeField, timeField } from '../inject/pending-call.js';
import { controlBlock, headFlag, type RingGeometry } from '../inject/probe-code.js';
import { Assembler, Label } from './assembler.js';
import { writeExtents } from './extents.js';
import { controlWord, readTime, writeFields } from './fields.js';
import { CLAIM, type Contents, check, claim, claimRarely, commit, insideSegment, segmentOf } from './record.js';
import { R10, R11, RAX, RCX, RDX, RSP } from './registers.js';
import type { Stack } from './stack.js';

/**
 * Calls that pend, as `PendingCall` draws it. Every change of HEAD is one instruction, so no interrupt comes in its
 * middle. ABA: HEAD may repeat while calls pend and vanish, but never with the same claim. Only the locker clears
 * `locked`; only the owning call clears `pending`. A call is identified by the address of its return address on the
 * stack, which no other open call has.
 */
const toPending = headFlag.pending - headFlag.locked;

/** In: r10 = HEAD. Adds to HEAD if it still has that value; else goes to `moved`. Clobbers rax and r10. */
function exchangeHead(code: Assembler, ring: Omit<RingGeometry, 'wait'>, by: number, moved: Label): void {
  code.move(RAX, R10);
  code.address(R10, { base: RAX, offset: by });
  code.compareExchange(controlWord(ring, controlBlock.head), R10);
  code.branch('ne', moved);
}

/** Makes space in the trampoline's code. Called last; goes on behind itself if the event is dropped. */
export type Rarely = () => void;

/** An entry's record, pending or claimed. A record's registers are pushed already. */
export function pend(code: Assembler, contents: Contents, stack: Stack): Rarely {
  check(contents);
  const { ring, fields, extents = [] } = contents;
  const pending = pendingOf(ring);
  const time = timeField(fields);
  const head = controlWord(ring, controlBlock.head);
  const [again, flagged, fill, claimed] = [new Label(), new Label(), new Label(), new Label()];
  const [publish, done] = [new Label(), new Label()];
  code.bind(again);
  code.load(R10, head);
  code.testConstant(R10, headFlag.pending | headFlag.locked);
  code.branch('ne', flagged);
  exchangeHead(code, ring, headFlag.locked, again);
  code.address(R11, { at: pending.record });
  // No claim is 0.
  code.constant(R10, 0n);
  code.bind(fill);
  writeFields(
    code,
    fields.filter((field) => field !== time),
    ring,
    stack,
  );
  writeExtents(code, extents, stack);
  code.test(R10, R10);
  code.branch('ne', claimed);
  code.address(RAX, { base: RSP, offset: stack.returnAddress });
  code.store({ base: R11, offset: 0 }, RAX);
  code.bind(publish);
  code.load(R10, head);
  writeTime(code, time);
  exchangeHead(code, ring, toPending, publish);
  code.bind(done);
  return () => {
    code.bind(claimed);
    writeTime(code, time);
    commit(code);
    code.jump(done);
    code.bind(flagged);
    const labels = claim(code, ring);
    code.jump(fill);
    claimRarely(code, ring, labels, again);
  };
}

/** At an exit: goes to `vanished` if the call still pends and was short. */
export function vanish(code: Assembler, contents: Contents, stack: Stack, below: bigint, vanished: Label): void {
  const { ring, fields } = contents;
  const pending = pendingOf(ring);
  const time = timeField(fields);
  const [look, record] = [new Label(), new Label()];
  code.bind(look);
  code.load(R10, controlWord(ring, controlBlock.head));
  code.testConstant(R10, headFlag.pending);
  code.branch('e', record);
  code.address(R11, { at: pending.record });
  code.address(RAX, { base: RSP, offset: stack.returnAddress });
  code.arithmetic('cmp', RAX, { base: R11, offset: 0 });
  code.branch('ne', record);
  readTime(code, time.from.counter);
  code.store(controlWord(ring, controlBlock.ended), RAX);
  code.arithmetic('sub', RAX, { base: R11, offset: time.at });
  code.arithmetic('cmp', RAX, BigInt.asIntN(32, below) === below ? { constant: below } : code.literal(below));
  code.branch('ae', record);
  exchangeHead(code, ring, -headFlag.pending, look);
  code.jump(vanished);
  code.bind(record);
}

/** Stores the time in the record at r11. Clobbers rax and rdx. */
function writeTime(code: Assembler, { at, from }: TimeField): void {
  readTime(code, from.counter);
  code.store({ base: R11, offset: at }, RAX);
}

/**
 * In: rax = HEAD (pending bit set, room available), r11 = return address. Moves the pending record into the ring
 * unless another writer did. Clobbers r10. Returns to r11.
 */
export function flush(at: Addr, ring: Omit<RingGeometry, 'wait'>): Uint8Array {
  const { record } = pendingOf(ring);
  const code = new Assembler(at);
  const head = controlWord(ring, controlBlock.head);
  const done = new Label();
  const slot = 2 ** ring.slotShift;
  code.push(RCX);
  code.push(RDX);
  segmentOf(code, ring, RDX);
  code.address(R10, { base: RAX, offset: slot - toPending });
  code.compareExchange(head, R10);
  code.branch('ne', done);
  code.arithmetic('and', RAX, CLAIM);
  code.move(R10, RAX);
  code.arithmetic('and', R10, insideSegment(ring), 4);
  code.arithmetic('add', RDX, R10);
  code.address(RCX, { at: record });
  for (let word = 8; word < slot; word += 8) {
    code.load(R10, { base: RCX, offset: word });
    code.store({ base: RDX, offset: word }, R10);
  }
  code.store({ base: RDX, offset: 0 }, RAX);
  code.subtractAtOnce(head, BigInt(headFlag.locked));
  code.bind(done);
  code.pop(RDX);
  code.pop(RCX);
  code.jumpTo(R11);
  return code.finish();
}
