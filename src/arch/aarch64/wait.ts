import { Label } from '../inject/code-buffer.js';
import type { ProbeCode } from '../inject/probe-code.js';
import { controlBlock } from '../inject/ring-contract.js';
import { Assembler, addi, ldr, mrs, nop, ret, str, sub, T0, T1, T2, T4, T5, T6 } from './assembler.js';
import { atomicAdd } from './count.js';
import { LINK } from './record-code.js';
import { SP } from './registers.js';
import { CNTVCT_EL0 } from './system-registers.js';

/** The stack: x11, what is left of `spins`, when the wait began, the last beat, x12 and x13. */
const waitFrame = 48;
const place = { t4: 0, spins: 8, began: 16, beat: 24, t5: 32, t6: 40 } as const;

/**
 * In: x16 = the control block's address, x17 = the claim beyond the limit, x10 = return address. Returns to x10 to try
 * again, or behind the instruction there to drop the event. Clobbers x9; saves x11 to x13.
 */
export const wait: ProbeCode['wait'] = (at, _ring, isTimed) => {
  const code = new Assembler(at);
  const [again, look, drop, done] = [new Label(), new Label(), new Label(), new Label()];
  const added = { before: T5, after: T5, status: T6 };
  code.emit(addi(SP, SP, -waitFrame), str(T4, SP, place.t4), str(T5, SP, place.t5), str(T6, SP, place.t6));
  if (isTimed) code.emit(mrs(T2, CNTVCT_EL0), str(T2, SP, place.began));
  code.emit(ldr(T2, T0, controlBlock.beat), str(T2, SP, place.beat));
  code.emit(ldr(T2, T0, controlBlock.spins), str(T2, SP, place.spins));
  code.bind(again);
  code.emit(ldr(T4, T0, controlBlock.unattended));
  code.branchZero('not-zero', T4, drop);
  code.emit(ldr(T2, T0, controlBlock.looks));
  code.bind(look);
  code.emit(ldr(T4, T0, controlBlock.limit), sub(T4, T1, T4));
  code.branchBit('not-zero', T4, 63, done);
  whilePositive(code, look);
  const breakpoint = code.here;
  code.emit(nop);
  code.emit(ldr(T2, SP, place.spins));
  whilePositive(code, again, place.spins);
  code.emit(ldr(T2, T0, controlBlock.spins), str(T2, SP, place.spins), ldr(T2, SP, place.beat));
  code.emit(ldr(T4, T0, controlBlock.beat), str(T4, SP, place.beat), sub(T2, T2, T4));
  code.branchZero('not-zero', T2, again);
  code.loadConstant(T4, 1n);
  code.emit(str(T4, T0, controlBlock.unattended));
  code.bind(drop);
  code.loadConstant(T2, 1n);
  code.emit(addi(T4, T0, controlBlock.dropped));
  atomicAdd(code, T4, T2, added);
  code.emit(addi(LINK, LINK, 4));
  code.bind(done);
  if (isTimed) {
    code.emit(mrs(T2, CNTVCT_EL0), ldr(T4, SP, place.began), sub(T2, T2, T4), addi(T4, T0, controlBlock.waited));
    atomicAdd(code, T4, T2, added);
  }
  code.emit(ldr(T4, SP, place.t4), ldr(T5, SP, place.t5), ldr(T6, SP, place.t6), addi(SP, SP, waitFrame), ret(LINK));
  return { code: code.finish(), breakpoint };
};

/** Takes one from x9, and goes on at `again` while more than 0 is left. Overwrites x11. */
function whilePositive(code: Assembler, again: Label, keptAt?: number): void {
  code.emit(addi(T2, T2, -1));
  if (keptAt !== undefined) code.emit(str(T2, SP, keptAt));
  code.emit(addi(T4, T2, -1));
  code.branchBit('zero', T4, 63, again);
}
