import type { Addr } from '../../base/addr.js';
import { Label } from '../inject/code-buffer.js';
import { recordFilling } from '../inject/fill-record.js';
import { controlBlock, type RingGeometry } from '../inject/ring-contract.js';
import type { ClaimLabels } from '../inject/trampoline-skeleton.js';
import {
  type Assembler,
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
  mrs,
  orr,
  stlr,
  stlxr,
  strD,
  sub,
  T0,
  T1,
  T2,
  T3,
  T4,
  T5,
} from './assembler.js';
import { floatArguments, ZR } from './registers.js';
import { CNTVCT_EL0, CPACR_EL1, CURRENT_EL, MPIDR_EL1 } from './system-registers.js';

/** Where `wait` goes on: at `again`, or at `dropped` 4 bytes further. */
export const LINK = T3;

/**
 * In: x16 = the control block's address. Out: x17 = the claim, x9 = the record's address. No reservation is left over
 * for the code that this code interrupted. HEAD and LIMIT are below 2^63, so the sign of their difference compares them.
 */
export function claim(code: Assembler, ring: RingGeometry, labels: ClaimLabels): void {
  const { slotShift, segmentShift, countShift } = ring;
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
  code.branchZero('not-zero', T3, labels.moved);
  code.emit(addi(T1, T1, slot), stlxr(T3, T1, T0), addi(T1, T1, -slot));
  code.branchZero('not-zero', T3, reserve);
  code.emit(andOnes(T3, T1, segmentShift), add(T2, T2, T3));
}

/** Another writer was faster: its value is stored once more, or not at all. */
export const release = (code: Assembler): void => code.emit(clrex);

export function waitForRoom(code: Assembler, wait: Addr): void {
  // Behind the jump.
  code.emit(adr(LINK, 4 + farJumpBytes));
  code.jumpFar(wait, T2);
}

/** `CPACR_EL1.FPEN`: while its low bit is 0, each access to a vector register traps. */
const FPEN = 20;

/** Behind the return address. */
export const keptOffset = (index: number): number => 8 + 8 * index;

export const fillRecord = recordFilling<Assembler>({
  name: 'AArch64',
  keptOffset,
  floatNumber: (name) => (floatArguments.includes(name) ? floatArguments.indexOf(name) : undefined),
  storeFloat: strD,
  floatsOff(code, off) {
    // At EL2 other registers say so.
    code.emit(mrs(T3, CURRENT_EL));
    code.branchBit('not-zero', T3, 3, off);
    code.emit(mrs(T3, CPACR_EL1));
    code.branchBit('zero', T3, FPEN, off);
  },
  readTime: mrs(T3, CNTVCT_EL0),
  hart(code, { how }) {
    if (how !== 'mpidr') throw new RangeError(`AArch64 has no ${how}`);
    code.emit(mrs(T3, MPIDR_EL1));
    return T3;
  },
  extentEnd: [
    // All ones where both are not 0: then one of x and -x is below 0.
    ...[sub(T3, ZR, T0), orr(T3, T3, T0), sub(T5, ZR, T4), orr(T5, T5, T4), and(T3, T3, T5), asr(T3, T3, 63)],
    ...[add(T4, T4, T0), andOnes(T0, T0, 61, 3), sub(T4, T4, T0), and(T4, T4, T3), add(T4, T4, T0)],
  ],
  commit: [stlr(T1, T2)],
});

/** See `ProbeCode.outerCopySteps`. */
export const outerCopySteps = { beforeTime: true, closed: 2, listed: 9, each: 9 } as const;
