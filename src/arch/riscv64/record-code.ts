import type { Addr } from '../../base/addr.js';
import { Label } from '../inject/code-buffer.js';
import { recordFilling } from '../inject/fill-record.js';
import { loadAt } from '../inject/integers.js';
import { controlBlock, type RingGeometry } from '../inject/ring-contract.js';
import type { ClaimLabels } from '../inject/trampoline-skeleton.js';
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
  lrD,
  scDRelease,
  sd,
  slli,
  sltu,
  srli,
  sub,
  T0,
  T1,
  T2,
  T3,
  T4,
  T5,
} from './assembler.js';
import { floatNumber, TP } from './registers.js';

/** Where `wait` goes on: at `again`, or at `dropped` 4 bytes further. */
export const LINK = T3;

const READS = 2;
const WRITES = 1;
/** The largest step of an addi that is a power of two. */
const STEP = 1024;

/**
 * In: t0 = the control block's address. Out: t1 = the claim, t2 = the record's address. On every way, each
 * load-reserved is followed by a store-conditional, so that no reservation is left over for the code that this code
 * interrupted.
 */
export function claim(code: Assembler, ring: RingGeometry, labels: ClaimLabels): void {
  const { slotShift, segmentShift, countShift } = ring;
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
}

/** Another writer was faster: its value is stored once more, or not at all. */
export const release = (code: Assembler): void => code.emit(scDRelease(0, T3, T0));

export const waitForRoom = (code: Assembler, wait: Addr): void => code.jumpFar(wait, LINK, LINK);

/** The CSR that trampolines read the time from. */
export const TIME = 0xc01;
export const readTime = (to: number): number => csr('csrrs', to, TIME, 0);
const SSTATUS = 0x100;
/** `sstatus.FS`: 0 while the unit is off, and each access to one of its registers traps. */
const FS = { shift: 13, bits: 2 } as const;

export const keptOffset = (index: number): number => 8 * index;

export const fillRecord = recordFilling<Assembler>({
  name: 'RISC-V',
  keptOffset,
  floatNumber,
  storeFloat: fsd,
  floatsOff(code, off) {
    code.emit(csr('csrrs', T3, SSTATUS, 0), srli(T3, T3, FS.shift), andi(T3, T3, 2 ** FS.bits - 1));
    code.branchZero('zero', T3, off);
  },
  readTime: readTime(T3),
  hart(code, { how, offset = 0 }) {
    if (how === 'tp') return TP;
    if (how === 'at-tp') loadAt(code, { size: 4, to: T3, pointer: TP, offset, temporary: T3 });
    else throw new RangeError(`RISC-V has no ${how}`);
    return T3;
  },
  extentEnd: [
    ...[sltu(T3, 0, T0), sltu(T5, 0, T4), and(T3, T3, T5), sub(T3, 0, T3)],
    ...[add(T4, T4, T0), and(T4, T4, T3), andi(T0, T0, -8)],
  ],
  commit: [fence(WRITES, WRITES), sd(T1, T2, 0)],
});

/** See `ProbeCode.outerCopySteps`. */
export const outerCopySteps = { beforeTime: true, closed: 2, listed: 8, each: 9 } as const;
