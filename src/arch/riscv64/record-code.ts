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
  add,
  addi,
  and,
  andi,
  csr,
  fence,
  fsd,
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
import { floatNumber, RA, registerNamed, SP, TP } from './registers.js';

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
export function claim(code: Assembler, ring: RingGeometry): ClaimLabels {
  const { slotShift, segmentShift, countShift } = ring;
  const labels = { again: new Label(), moved: new Label(), full: new Label() };
  code.bind(labels.again);
  code.emit(ld(T1, T0, controlBlock.head), ld(T3, T0, controlBlock.limit));
  code.branch('bgeu', T1, T3, labels.full);
  // Orders earlier loads before later loads.
  code.emit(fence(READS, READS));
  if (countShift === 0) code.emit(ld(T2, T0, controlBlock.segments));
  else {
    code.emit(srli(T2, T1, segmentShift), andi(T2, T2, 2 ** countShift - 1), slli(T2, T2, 3));
    code.emit(add(T2, T2, T0), ld(T2, T2, controlBlock.segments));
  }
  // HEAD, if it still equals t1, is moved behind the slot.
  const reserve = new Label();
  code.bind(reserve);
  code.emit(lrD(T3, T0));
  code.branch('bne', T3, T1, labels.moved);
  let left = 2 ** slotShift;
  for (; left > STEP; left -= STEP) code.emit(addi(T3, T3, STEP));
  code.emit(addi(T3, T3, left), scDRelease(T3, T3, T0));
  code.branch('bne', T3, 0, reserve);
  code.emit(slli(T3, T1, 64 - segmentShift), srli(T3, T3, 64 - segmentShift), add(T2, T2, T3));
  return labels;
}

/**
 * The rare ways of a claim. Another writer was faster: its value is stored once more, or not at all. The ring is
 * full: waits.
 */
export function claimRarely(code: Assembler, ring: RingGeometry, labels: ClaimLabels, dropped: Label): void {
  code.bind(labels.moved);
  code.emit(scDRelease(0, T3, T0));
  code.jump(labels.again);
  code.bind(labels.full);
  code.jumpFar(ring.wait, LINK, LINK);
  code.jump(labels.again);
  code.jump(dropped);
}

/** Fills the claimed record and commits it. Clobbers t0 and t3. */
export function fillRecord(code: Assembler, record: RecordContents): void {
  const isControl = ({ from }: RecordField): boolean => from.kind === 'control';
  for (const field of record.fields.filter(isControl)) putField(code, field);
  if (record.outerCopy !== undefined) copyOuter(code, record.outerCopy);
  for (const field of record.fields.filter((field) => !isControl(field))) putField(code, field);
  for (const group of loadGroups(record.fields, MAX_ALIGN)) putLoads(code, group);
  for (const extent of record.extents ?? []) putExtent(code, extent);
  code.emit(fence(WRITES, WRITES), sd(T1, T2, 0));
}

const storeOps = { 1: 'sb', 2: 'sh', 4: 'sw', 8: 'sd' } as const;
const loadOps = { 1: 'lbu', 2: 'lhu', 4: 'lwu', 8: 'ld' } as const;

function put(code: Assembler, field: RecordField, register: number): void {
  code.emit(store(storeOps[field.size], register, T2, field.at));
}

function putField(code: Assembler, field: RecordField): void {
  if (field.from.kind === 'load') return;
  if (field.from.kind === 'float') putFloat(code, field, field.from);
  else put(code, field, sourceValue(code, field.from));
}

const SSTATUS = 0x100;
/** `sstatus.FS`: 0 while the unit is off, and each access to one of its registers traps. */
const FS = { shift: 13, mask: 3 } as const;

function putFloat(code: Assembler, { at, size }: RecordField, { name, mayBeOff }: FloatSource): void {
  const number = floatNumber(name);
  if (number === undefined || size !== 8) throw new RangeError(`${name} is no floating-point register of 8 bytes`);
  const [off, done] = [new Label(), new Label()];
  if (mayBeOff) {
    code.emit(csr('csrrs', T3, SSTATUS, 0), srli(T3, T3, FS.shift), andi(T3, T3, FS.mask));
    code.branch('beq', T3, 0, off);
  }
  code.emit(fsd(number, T2, at));
  if (!mayBeOff) return;
  code.jump(done);
  code.bind(off);
  code.emit(addi(T3, 0, -1), sd(T3, T2, at));
  code.bind(done);
}

type FloatSource = FieldSource & { readonly kind: 'float' };

export const timeCsrs = { cycle: 0xc00, time: 0xc01 } as const;
const MHARTID = 0xf14;

export function timeCsr(counter: string): number {
  if (counter !== 'time' && counter !== 'cycle') throw new RangeError(`RISC-V has no ${counter}`);
  return timeCsrs[counter];
}

/** The register that has the value; t3 if the value must be loaded or computed. */
function sourceValue(code: Assembler, from: Exclude<FieldSource, { readonly kind: 'load' | 'float' }>): number {
  switch (from.kind) {
    case 'register':
      return code.original(registerNamed(from.name), T3);
    case 'stack-pointer':
      return code.original(SP, T3);
    case 'return-address':
      return code.original(RA, T3);
    case 'kept':
      code.emit(ld(T3, SP, keptAt(code, from.index)));
      return T3;
    case 'constant':
      if (BigInt.asUintN(64, from.value) === 0n) return 0;
      code.loadConstant(T3, from.value);
      return T3;
    case 'time':
      code.emit(csr('csrrs', T3, timeCsr(from.counter), 0));
      return T3;
    case 'hart':
      if (from.how === 'tp') return TP;
      if (from.how === 'at-tp') {
        loadAt(code, 4, T3, TP, from.offset ?? 0);
        return T3;
      }
      if (from.how !== 'mhartid') throw new RangeError(`RISC-V has no ${from.how}`);
      code.emit(csr('csrrs', T3, MHARTID, 0));
      return T3;
    case 'control':
      code.emit(ld(T3, T0, from.offset));
      return T3;
    case 'outer':
      throw new RangeError('RISC-V has no words of a thread');
  }
}

function keptAt({ frame }: Assembler, index: number): number {
  if (!Number.isInteger(index) || index < 0 || index >= frame.kept) throw new RangeError(`No kept register ${index}`);
  return frame.frame + 8 * index;
}

/** Zero-extended, from any offset. */
export function loadAt(code: Assembler, size: RecordField['size'], to: number, pointer: number, offset: number): void {
  if (offset >= -2048 && offset < 2048) {
    code.emit(load(loadOps[size], to, pointer, offset));
    return;
  }
  code.loadConstant(to, BigInt(offset));
  code.emit(add(to, to, pointer), load(loadOps[size], to, to, 0));
}

const MAX_ALIGN = 2048;

function putLoads(code: Assembler, { base, align, loads }: LoadGroup): void {
  const wrong = new Label();
  const done = new Label();
  let pointer = T0;
  if (base.kind === 'register') pointer = code.original(registerNamed(base.name), T0);
  else code.emit(ld(T0, SP, keptAt(code, base.index)));
  pointer = follow(code, pointer, base.through ?? [], T3, wrong);
  verifyPointer(code, pointer, align, T3, wrong);
  for (const { field, offset } of loads) {
    loadAt(code, field.size, T3, pointer, offset);
    put(code, field, T3);
  }
  code.jump(done);
  code.bind(wrong);
  code.emit(addi(T3, 0, -1));
  for (const { field } of loads) put(code, field, T3);
  code.bind(done);
}

/**
 * No branch depends on the number of bytes, so that each record takes as many instructions. A word behind the end is
 * loaded from the record instead. t0 = the word's place, t4 = the end, t5 = the place that is loaded from.
 */
function putExtent(code: Assembler, { at, words, shift, from }: ExtentCopy): void {
  const done = new Label();
  const take = (to: number, name: string): void => {
    const register = code.original(registerNamed(name), to);
    if (register !== to) code.emit(addi(to, register, 0));
  };
  if (from.kind === 'registers') {
    take(T0, from.pointer);
    take(T4, from.count);
  } else {
    take(T0, from.register);
    follow(code, T0, from.through, T3, done);
    verifyPointer(code, T0, 8, T3, done);
    loadAt(code, 8, T4, T0, from.count);
    loadAt(code, 8, T0, T0, from.pointer);
  }
  if (shift > 0) code.emit(slli(T4, T4, shift));
  code.emit(sltu(T3, 0, T0), sltu(T5, 0, T4), and(T3, T3, T5), sub(T3, 0, T3));
  code.emit(add(T4, T4, T0), and(T4, T4, T3), andi(T0, T0, -8));
  for (let word = 0; word < words; word++) {
    code.emit(sltu(T3, T0, T4), sub(T3, 0, T3), sub(T5, T0, T2), and(T5, T5, T3), add(T5, T5, T2));
    code.emit(ld(T5, T5, 0), sd(T5, T2, at + 8 * word), addi(T0, T0, 8));
  }
  code.bind(done);
}

/** See `ProbeCode.outerCopySteps`: the instructions of {@link copyOuter}. */
export const outerCopySteps = { beforeTime: true, closed: 2, listed: 8, each: 9 } as const;

/**
 * Byte by byte, by the list at `outerPlan`. t3 = place in the list, t4 = the Future, t5 = bytes left, t0 = place in
 * the record.
 */
function copyOuter(code: Assembler, { at, room }: OuterCopy): void {
  const next = new Label();
  const done = new Label();
  code.emit(ld(T4, T0, controlBlock.outer));
  code.branch('beq', T4, 0, done);
  code.emit(ld(T3, T0, controlBlock.outerPlan), load('lwu', T5, T3, 0), addi(T6, 0, room));
  code.branch('bltu', T6, T5, done);
  code.emit(addi(T0, T2, at));
  code.bind(next);
  code.branch('beq', T5, 0, done);
  code.emit(load('lwu', T6, T3, 4), add(T6, T6, T4), load('lbu', T6, T6, 0), store('sb', T6, T0, 0));
  code.emit(addi(T3, T3, 4), addi(T0, T0, 1), addi(T5, T5, -1));
  code.jump(next);
  code.bind(done);
}
