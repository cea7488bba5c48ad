import { Label } from '../inject/code-buffer.js';
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
  access,
  add,
  addi,
  adr,
  and,
  andOnes,
  asr,
  clrex,
  dmbLoads,
  farJumpBytes,
  ldr,
  ldxr,
  lsl,
  lsr,
  mov,
  mrs,
  orr,
  stlr,
  stlxr,
  str,
  strD,
  sub,
  T0,
  T1,
  T2,
  T3,
  T4,
  T5,
  T6,
} from './assembler.js';
import { follow, loadAt, verifyPointer } from './condition.js';
import { floatArguments, LR, registerNamed, SP, ZR } from './registers.js';
import { CNTVCT_EL0, CPACR_EL1, MPIDR_EL1 } from './system-numbers.js';

/** Where `wait` goes on: at `again`, or at `dropped` 4 bytes further. */
export const LINK = T3;

/**
 * The largest sizes of a slot and of a segment. What writes a record has in: x16 = the control block's address, x17 =
 * the claim, x9 = the record; x10 is free, and x11 and x12 where there are extents. Once the control block was read,
 * x16 is free too.
 */
export const mostShifts = { slotShift: 11, segmentShift: 48 } as const;

/** Places in the code of a claim that its rare ways lead to. */
interface ClaimLabels {
  readonly again: Label;
  readonly moved: Label;
  readonly full: Label;
}

/**
 * In: x16 = the control block's address. Out: x17 = the claim, x9 = the record's address. No reservation is left over
 * for the code that this code interrupted. HEAD and LIMIT are below 2^63, so the sign of their difference compares them.
 */
export function claim(code: Assembler, ring: RingGeometry): ClaimLabels {
  const { slotShift, segmentShift, countShift } = ring;
  const labels = { again: new Label(), moved: new Label(), full: new Label() };
  code.bind(labels.again);
  code.emit(ldr(T1, T0, controlBlock.head), ldr(T3, T0, controlBlock.limit), sub(T3, T1, T3));
  code.branchBit('zero', T3, 63, labels.full);
  code.emit(dmbLoads);
  if (countShift === 0) code.emit(ldr(T2, T0, controlBlock.segments));
  else {
    code.emit(lsr(T2, T1, segmentShift), andOnes(T2, T2, countShift), lsl(T2, T2, 3));
    code.emit(add(T2, T2, T0), ldr(T2, T2, controlBlock.segments));
  }
  // HEAD, if it still equals x17, is moved behind the slot.
  const [slot, reserve] = [2 ** slotShift, new Label()];
  code.bind(reserve);
  code.emit(ldxr(T3, T0), sub(T3, T3, T1));
  code.branch('not-zero', T3, labels.moved);
  code.emit(addi(T1, T1, slot), stlxr(T3, T1, T0), addi(T1, T1, -slot));
  code.branch('not-zero', T3, reserve);
  code.emit(andOnes(T3, T1, segmentShift), add(T2, T2, T3));
  return labels;
}

/** The rare ways of a claim. Another writer was faster. The ring is full: waits. */
export function claimRarely(code: Assembler, ring: RingGeometry, labels: ClaimLabels, dropped: Label): void {
  code.bind(labels.moved);
  code.emit(clrex);
  code.jump(labels.again);
  code.bind(labels.full);
  // Behind the jump.
  code.emit(adr(LINK, 4 + farJumpBytes));
  code.jumpFar(ring.wait, T2);
  code.jump(labels.again);
  code.jump(dropped);
}

/** Fills the claimed record and commits it: after all its stores. Clobbers x16 and x10. */
export function fillRecord(code: Assembler, record: RecordContents): void {
  const isControl = ({ from }: RecordField): boolean => from.kind === 'control';
  for (const field of record.fields.filter(isControl)) putField(code, field);
  if (record.outerCopy !== undefined) copyOuter(code, record.outerCopy);
  for (const field of record.fields.filter((field) => !isControl(field))) putField(code, field);
  for (const group of loadGroups(record.fields, MAX_ALIGN)) putLoads(code, group);
  for (const extent of record.extents ?? []) putExtent(code, extent);
  code.emit(stlr(T1, T2));
}

function put(code: Assembler, field: RecordField, register: number): void {
  code.emit(access('store', field.size, register, T2, field.at));
}

function putField(code: Assembler, field: RecordField): void {
  if (field.from.kind === 'load') return;
  if (field.from.kind === 'float') putFloat(code, field, field.from);
  else put(code, field, sourceValue(code, field.from));
}

/** `CPACR_EL1.FPEN`: while its low bit is 0, each access to a vector register traps. */
const FPEN = 20;

function putFloat(code: Assembler, { at, size }: RecordField, { name, mayBeOff }: FloatSource): void {
  const number = floatArguments.indexOf(name);
  if (number < 0 || size !== 8) throw new RangeError(`${name} is no floating-point register of 8 bytes`);
  const [off, done] = [new Label(), new Label()];
  if (mayBeOff) {
    code.emit(mrs(T3, CPACR_EL1));
    code.branchBit('zero', T3, FPEN, off);
  }
  code.emit(strD(number, T2, at));
  if (!mayBeOff) return;
  code.jump(done);
  code.bind(off);
  code.loadConstant(T3, -1n);
  code.emit(str(T3, T2, at));
  code.bind(done);
}

type FloatSource = FieldSource & { readonly kind: 'float' };

/** The name of the counter. */
export const counter = 'cntvct';

export function verifyCounter(name: string): void {
  if (name !== counter) throw new RangeError(`AArch64 has no ${name}`);
}

/** The register that has the value; x10 if the value must be loaded or computed. */
function sourceValue(code: Assembler, from: Exclude<FieldSource, { readonly kind: 'load' | 'float' }>): number {
  switch (from.kind) {
    case 'register':
      return code.original(registerNamed(from.name), T3);
    case 'stack-pointer':
      return code.original(SP, T3);
    case 'return-address':
      return code.original(LR, T3);
    case 'kept':
      code.emit(ldr(T3, SP, keptAt(code, from.index)));
      return T3;
    case 'constant':
      if (BigInt.asUintN(64, from.value) === 0n) return ZR;
      code.loadConstant(T3, from.value);
      return T3;
    case 'time':
      verifyCounter(from.counter);
      code.emit(mrs(T3, CNTVCT_EL0));
      return T3;
    case 'hart':
      if (from.how !== 'mpidr') throw new RangeError(`AArch64 has no ${from.how}`);
      code.emit(mrs(T3, MPIDR_EL1));
      return T3;
    case 'control':
      code.emit(ldr(T3, T0, from.offset));
      return T3;
    case 'outer':
      throw new RangeError('AArch64 has no words of a thread');
  }
}

/** Where a kept word lies in a hook frame, behind the return address. */
export const keptOffset = (index: number): number => 8 + 8 * index;

function keptAt({ frame }: Assembler, index: number): number {
  if (!Number.isInteger(index) || index < 0 || index >= frame.kept) throw new RangeError(`No kept register ${index}`);
  return frame.frame + keptOffset(index);
}

const MAX_ALIGN = 2048;

function putLoads(code: Assembler, { base, align, loads }: LoadGroup): void {
  const wrong = new Label();
  const done = new Label();
  let pointer = T0;
  if (base.kind === 'register') pointer = code.original(registerNamed(base.name), T0);
  else code.emit(ldr(T0, SP, keptAt(code, base.index)));
  pointer = follow(code, pointer, base.through ?? [], T3, wrong);
  verifyPointer(code, pointer, align, T3, wrong);
  for (const { field, offset } of loads) {
    loadAt(code, { size: field.size, to: T3, pointer, offset, temporary: T3 });
    put(code, field, T3);
  }
  code.jump(done);
  code.bind(wrong);
  code.loadConstant(T3, -1n);
  for (const { field } of loads) put(code, field, T3);
  code.bind(done);
}

/**
 * No branch depends on the number of bytes, so that each record takes as many instructions. A word behind the end is
 * loaded from the record instead. x16 = the word's place, x11 = the end, x12 = the place that is loaded from. Addresses
 * of one object are less than 2^63 apart, so the sign of their difference compares them.
 */
function putExtent(code: Assembler, { at, words, shift, from }: ExtentCopy): void {
  const done = new Label();
  const take = (to: number, name: string): void => {
    const register = code.original(registerNamed(name), to);
    if (register !== to) code.emit(mov(to, register));
  };
  if (from.kind === 'registers') {
    take(T0, from.pointer);
    take(T4, from.count);
  } else {
    take(T0, from.register);
    follow(code, T0, from.through, T3, done);
    verifyPointer(code, T0, 8, T3, done);
    loadAt(code, { size: 8, to: T4, pointer: T0, offset: from.count, temporary: T4 });
    loadAt(code, { size: 8, to: T0, pointer: T0, offset: from.pointer, temporary: T3 });
  }
  if (shift > 0) code.emit(lsl(T4, T4, shift));
  // All ones where both are not 0: then one of x and -x is below 0.
  code.emit(sub(T3, ZR, T0), orr(T3, T3, T0), sub(T5, ZR, T4), orr(T5, T5, T4), and(T3, T3, T5), asr(T3, T3, 63));
  code.emit(add(T4, T4, T0), andOnes(T0, T0, 61, 3), sub(T4, T4, T0), and(T4, T4, T3), add(T4, T4, T0));
  for (let word = 0; word < words; word++) {
    code.emit(sub(T3, T0, T4), asr(T3, T3, 63), sub(T5, T0, T2), and(T5, T5, T3), add(T5, T5, T2));
    code.emit(ldr(T5, T5, 0), str(T5, T2, at + 8 * word), addi(T0, T0, 8));
  }
  code.bind(done);
}

/** See `ProbeCode.outerCopySteps`: the instructions of {@link copyOuter}. */
export const outerCopySteps = { beforeTime: true, closed: 2, listed: 9, each: 9 } as const;

/**
 * Byte by byte, by the list at `outerPlan`. x10 = place in the list, x11 = the Future, x12 = bytes left, x16 = place in
 * the record.
 */
function copyOuter(code: Assembler, { at, room }: OuterCopy): void {
  const next = new Label();
  const done = new Label();
  code.emit(ldr(T4, T0, controlBlock.outer));
  code.branch('zero', T4, done);
  code.emit(ldr(T3, T0, controlBlock.outerPlan), access('load', 4, T5, T3, 0));
  code.loadConstant(T6, BigInt(room));
  code.emit(sub(T6, T6, T5));
  code.branchBit('not-zero', T6, 63, done);
  code.emit(addi(T0, T2, at));
  code.bind(next);
  code.branch('zero', T5, done);
  code.emit(access('load', 4, T6, T3, 4), add(T6, T6, T4), access('load', 1, T6, T6, 0), access('store', 1, T6, T0, 0));
  code.emit(addi(T3, T3, 4), addi(T0, T0, 1), addi(T5, T5, -1));
  code.jump(next);
  code.bind(done);
}
