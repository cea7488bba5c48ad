import {
  type ExtentCopy,
  type FieldSource,
  type LoadGroup,
  loadGroups,
  type OuterCopy,
  type RecordContents,
  type RecordField,
} from '../inject/record-parts.js';
import { controlBlock, type RingGeometry } from '../inject/ring-contract.js';
import {
  type Assembler,
  add,
  addi,
  and,
  andi,
  csr,
  fence,
  fsd,
  type Label,
  ld,
  load,
  lrD,
  scDRelease,
  sd,
  slli,
  sltu,
  srli,
  store,
  sub,
  T0,
  T1,
  T2,
  T3,
  T4,
  T5,
  T6,
} from './assembler.js';
import { follow, verifyPointer } from './condition.js';
import { floatNumber, RA, SP, TP } from './registers.js';
import { original, registerNamed, type TrampolineFrame } from './trampoline-frame.js';

/** Where `wait` goes on: at `again`, or at `dropped` 4 bytes further. */
export const LINK = T3;

const READS = 2;
const WRITES = 1;
/** The largest step of an addi that is a power of two. */
const STEP = 1024;

/**
 * The largest sizes of a slot and of a segment. What writes a record has in: t0 = the control block's address, t1 = the
 * claim, t2 = the record; t3 is free, and t4 and t5 where there are extents. Once the control block was read, t0 is free
 * too.
 */
export const mostShifts = { slotShift: 11, segmentShift: 48 } as const;

/** Places in the code of a claim that its rare ways lead to. */
interface ClaimLabels {
  readonly again: Label;
  readonly moved: Label;
  readonly full: Label;
}

/**
 * In: t0 = the control block's address. Out: t1 = the claim, t2 = the record's address. On every way, each
 * load-reserved is followed by a store-conditional, so that no reservation is left over for the code that this code
 * interrupted.
 */
export function claim(assembler: Assembler, ring: RingGeometry): ClaimLabels {
  const { slotShift } = ring;
  const labels = {
    again: assembler.label(),
    moved: assembler.label(),
    full: assembler.label(),
  };
  assembler.place(labels.again);
  assembler.emit(ld(T1, T0, controlBlock.head), ld(T3, T0, controlBlock.limit));
  assembler.branch('bgeu', T1, T3, labels.full);
  inOrder(assembler);
  segmentOf(assembler, ring);
  exchangeHead(assembler, T3, 2 ** slotShift, labels.moved);
  slotOf(assembler, ring, T3);
  return labels;
}

/** Orders earlier loads before later loads. */
function inOrder(assembler: Assembler): void {
  assembler.emit(fence(READS, READS));
}

/** In: t0 = the control block's address, t1 = a claim. Out: t2 = its segment's address. */
function segmentOf(
  assembler: Assembler,
  { segmentShift, countShift }: Pick<RingGeometry, 'segmentShift' | 'countShift'>,
): void {
  if (countShift === 0) assembler.emit(ld(T2, T0, controlBlock.segments));
  else {
    assembler.emit(srli(T2, T1, segmentShift), andi(T2, T2, 2 ** countShift - 1), slli(T2, T2, 3));
    assembler.emit(add(T2, T2, T0), ld(T2, T2, controlBlock.segments));
  }
}

/** In: t1 = a claim, t2 = its segment's address. Out: t2 = the slot's address. */
function slotOf(assembler: Assembler, { segmentShift }: Pick<RingGeometry, 'segmentShift'>, temporary: number): void {
  const [left, right] = [slli(temporary, T1, 64 - segmentShift), srli(temporary, temporary, 64 - segmentShift)];
  assembler.emit(left, right, add(T2, T2, temporary));
}

/**
 * Adds to HEAD if it still equals t1; else goes to `moved`, where the value in `temporary` must be stored once more.
 */
function exchangeHead(assembler: Assembler, temporary: number, by: number, moved: Label): void {
  const reserve = assembler.label();
  assembler.place(reserve);
  assembler.emit(lrD(temporary, T0));
  assembler.branch('bne', temporary, T1, moved);
  let left = by;
  for (; left > STEP; left -= STEP) assembler.emit(addi(temporary, temporary, STEP));
  assembler.emit(addi(temporary, temporary, left), scDRelease(temporary, temporary, T0));
  assembler.branch('bne', temporary, 0, reserve);
}

/**
 * The rare ways of a claim. Another writer was faster: its value is stored once more, or not at all. The ring is
 * full: waits.
 */
export function claimRarely(assembler: Assembler, ring: RingGeometry, labels: ClaimLabels, dropped: Label): void {
  assembler.place(labels.moved);
  assembler.emit(scDRelease(0, T3, T0));
  assembler.jump(labels.again);
  assembler.place(labels.full);
  assembler.jumpFar(ring.wait, LINK, LINK);
  assembler.jump(labels.again);
  assembler.jump(dropped);
}

/** Fills the claimed record and commits it. Clobbers t0 and t3. */
export function fillRecord(assembler: Assembler, frame: TrampolineFrame, record: RecordContents): void {
  fillFields(assembler, frame, record);
  commit(assembler);
}

function commit(assembler: Assembler): void {
  assembler.emit(fence(WRITES, WRITES), sd(T1, T2, 0));
}

function fillFields(assembler: Assembler, frame: TrampolineFrame, record: RecordContents): void {
  const isControl = ({ from }: RecordField): boolean => from.kind === 'control';
  for (const field of record.fields.filter(isControl)) putField(assembler, frame, field);
  if (record.outerCopy !== undefined) copyOuter(assembler, record.outerCopy);
  for (const field of record.fields.filter((field) => !isControl(field))) putField(assembler, frame, field);
  for (const group of loadGroups(record.fields, MAX_ALIGN)) putLoads(assembler, frame, group);
  for (const extent of record.extents ?? []) putExtent(assembler, frame, extent);
}

const storeOps = { 1: 'sb', 2: 'sh', 4: 'sw', 8: 'sd' } as const;
const loadOps = { 1: 'lbu', 2: 'lhu', 4: 'lwu', 8: 'ld' } as const;

function put(assembler: Assembler, field: RecordField, register: number): void {
  assembler.emit(store(storeOps[field.size], register, T2, field.at));
}

function putField(assembler: Assembler, frame: TrampolineFrame, field: RecordField): void {
  if (field.from.kind === 'load') return;
  if (field.from.kind === 'float') putFloat(assembler, field, field.from);
  else put(assembler, field, sourceValue(assembler, frame, field.from));
}

const SSTATUS = 0x100;
/** `sstatus.FS`: 0 while the unit is off, and each access to one of its registers traps. */
const FS = { shift: 13, mask: 3 } as const;

function putFloat(assembler: Assembler, { at, size }: RecordField, { name, mayBeOff }: FloatSource): void {
  const number = floatNumber(name);
  if (number === undefined || size !== 8) throw new RangeError(`${name} is no floating-point register of 8 bytes`);
  const [off, done] = [assembler.label(), assembler.label()];
  if (mayBeOff) {
    assembler.emit(csr('csrrs', T3, SSTATUS, 0), srli(T3, T3, FS.shift), andi(T3, T3, FS.mask));
    assembler.branch('beq', T3, 0, off);
  }
  assembler.emit(fsd(number, T2, at));
  if (!mayBeOff) return;
  assembler.jump(done);
  assembler.place(off);
  assembler.emit(addi(T3, 0, -1), sd(T3, T2, at));
  assembler.place(done);
}

type FloatSource = FieldSource & { readonly kind: 'float' };

export const timeCsrs = { cycle: 0xc00, time: 0xc01 } as const;
const MHARTID = 0xf14;

export function timeCsr(counter: string): number {
  if (counter !== 'time' && counter !== 'cycle') throw new RangeError(`RISC-V has no ${counter}`);
  return timeCsrs[counter];
}

/** The register that has the value; t3 if the value must be loaded or computed. */
function sourceValue(
  assembler: Assembler,
  frame: TrampolineFrame,
  from: Exclude<FieldSource, { readonly kind: 'load' | 'float' }>,
): number {
  switch (from.kind) {
    case 'register':
      return original(assembler, frame, registerNamed(from.name), T3);
    case 'stack-pointer':
      return original(assembler, frame, SP, T3);
    case 'return-address':
      return original(assembler, frame, RA, T3);
    case 'kept':
      assembler.emit(ld(T3, SP, keptAt(frame, from.index)));
      return T3;
    case 'constant':
      if (BigInt.asUintN(64, from.value) === 0n) return 0;
      assembler.loadConstant(T3, from.value);
      return T3;
    case 'time':
      assembler.emit(csr('csrrs', T3, timeCsr(from.counter), 0));
      return T3;
    case 'hart':
      if (from.how === 'tp') return TP;
      if (from.how === 'at-tp') {
        loadAt(assembler, 4, T3, TP, from.offset ?? 0);
        return T3;
      }
      if (from.how !== 'mhartid') throw new RangeError(`RISC-V has no ${from.how}`);
      assembler.emit(csr('csrrs', T3, MHARTID, 0));
      return T3;
    case 'control':
      assembler.emit(ld(T3, T0, from.offset));
      return T3;
    case 'outer':
      throw new RangeError('RISC-V has no words of a thread');
  }
}

function keptAt(frame: TrampolineFrame, index: number): number {
  if (!Number.isInteger(index) || index < 0 || index >= frame.kept) throw new RangeError(`No kept register ${index}`);
  return frame.frame + 8 * index;
}

/** Zero-extended, from any offset. */
export function loadAt(
  assembler: Assembler,
  size: RecordField['size'],
  to: number,
  pointer: number,
  offset: number,
): void {
  if (offset >= -2048 && offset < 2048) {
    assembler.emit(load(loadOps[size], to, pointer, offset));
    return;
  }
  assembler.loadConstant(to, BigInt(offset));
  assembler.emit(add(to, to, pointer), load(loadOps[size], to, to, 0));
}

const MAX_ALIGN = 2048;

function putLoads(assembler: Assembler, frame: TrampolineFrame, { base, align, loads }: LoadGroup): void {
  const wrong = assembler.label();
  const done = assembler.label();
  let pointer = T0;
  if (base.kind === 'register') pointer = original(assembler, frame, registerNamed(base.name), T0);
  else assembler.emit(ld(T0, SP, keptAt(frame, base.index)));
  pointer = follow(assembler, pointer, base.through ?? [], T3, wrong);
  verifyPointer(assembler, pointer, align, T3, wrong);
  for (const { field, offset } of loads) {
    loadAt(assembler, field.size, T3, pointer, offset);
    put(assembler, field, T3);
  }
  assembler.jump(done);
  assembler.place(wrong);
  assembler.emit(addi(T3, 0, -1));
  for (const { field } of loads) put(assembler, field, T3);
  assembler.place(done);
}

/**
 * No branch depends on the number of bytes, so that each record takes as many instructions. A word behind the end is
 * loaded from the record instead. t0 = the word's place, t4 = the end, t5 = the place that is loaded from.
 */
function putExtent(assembler: Assembler, frame: TrampolineFrame, { at, words, shift, from }: ExtentCopy): void {
  const done = assembler.label();
  const take = (to: number, name: string): void => {
    const register = original(assembler, frame, registerNamed(name), to);
    if (register !== to) assembler.emit(addi(to, register, 0));
  };
  if (from.kind === 'registers') {
    take(T0, from.pointer);
    take(T4, from.count);
  } else {
    take(T0, from.register);
    follow(assembler, T0, from.through, T3, done);
    verifyPointer(assembler, T0, 8, T3, done);
    loadAt(assembler, 8, T4, T0, from.count);
    loadAt(assembler, 8, T0, T0, from.pointer);
  }
  if (shift > 0) assembler.emit(slli(T4, T4, shift));
  assembler.emit(sltu(T3, 0, T0), sltu(T5, 0, T4), and(T3, T3, T5), sub(T3, 0, T3));
  assembler.emit(add(T4, T4, T0), and(T4, T4, T3), andi(T0, T0, -8));
  for (let word = 0; word < words; word++) {
    assembler.emit(sltu(T3, T0, T4), sub(T3, 0, T3), sub(T5, T0, T2), and(T5, T5, T3), add(T5, T5, T2));
    assembler.emit(ld(T5, T5, 0), sd(T5, T2, at + 8 * word), addi(T0, T0, 8));
  }
  assembler.place(done);
}

/** See `ProbeCode.outerCopySteps`: the instructions of {@link copyOuter}. */
export const outerCopySteps = { beforeTime: true, closed: 2, listed: 8, each: 9 } as const;

/**
 * Byte by byte, by the list at `outerPlan`. t3 = place in the list, t4 = the Future, t5 = bytes left, t0 = place in
 * the record.
 */
function copyOuter(assembler: Assembler, { at, room }: OuterCopy): void {
  const next = assembler.label();
  const done = assembler.label();
  assembler.emit(ld(T4, T0, controlBlock.outer));
  assembler.branch('beq', T4, 0, done);
  assembler.emit(ld(T3, T0, controlBlock.outerPlan), load('lwu', T5, T3, 0), addi(T6, 0, room));
  assembler.branch('bltu', T6, T5, done);
  assembler.emit(addi(T0, T2, at));
  assembler.place(next);
  assembler.branch('beq', T5, 0, done);
  assembler.emit(load('lwu', T6, T3, 4), add(T6, T6, T4), load('lbu', T6, T6, 0), store('sb', T6, T0, 0));
  assembler.emit(addi(T3, T3, 4), addi(T0, T0, 1), addi(T5, T5, -1));
  assembler.jump(next);
  assembler.place(done);
}
