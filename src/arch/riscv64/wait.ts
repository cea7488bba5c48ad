import { Label } from '../inject/code-buffer.js';
import type { ProbeCode } from '../inject/probe-code.js';
import { controlBlock } from '../inject/ring-contract.js';
import { Assembler, addi, amoaddD, jalr, ld, nop, sd, sub, T0, T1, T2, T4 } from './assembler.js';
import { LINK, readTime } from './record-code.js';
import { SP } from './registers.js';

/** Bytes of stack: t4, what is left of `spins`, when the wait began, and the last beat. */
const waitFrame = 32;

/**
 * In: t0 = the control block's address, t1 = the claim beyond the limit, t3 = return address. Returns to t3 to try
 * again, or behind the instruction there to drop the event. Clobbers t2; saves t4.
 */
export const wait: ProbeCode['wait'] = (at, _ring, isTimed) => {
  const assembler = new Assembler(at);
  const [again, look, drop, done] = [new Label(), new Label(), new Label(), new Label()];
  assembler.emit(addi(SP, SP, -waitFrame), sd(T4, SP, 0));
  if (isTimed) assembler.emit(readTime(T2), sd(T2, SP, 16));
  assembler.emit(ld(T2, T0, controlBlock.beat), sd(T2, SP, 24), ld(T2, T0, controlBlock.spins), sd(T2, SP, 8));
  assembler.bind(again);
  assembler.emit(ld(T4, T0, controlBlock.unattended));
  assembler.branch('bne', T4, 0, drop);
  assembler.emit(ld(T2, T0, controlBlock.looks));
  assembler.bind(look);
  assembler.emit(ld(T4, T0, controlBlock.limit));
  assembler.branch('bltu', T1, T4, done);
  assembler.emit(addi(T2, T2, -1));
  assembler.branch('blt', 0, T2, look);
  const breakpoint = assembler.here;
  assembler.emit(nop());
  assembler.emit(ld(T2, SP, 8), addi(T2, T2, -1), sd(T2, SP, 8));
  assembler.branch('blt', 0, T2, again);
  assembler.emit(ld(T2, T0, controlBlock.spins), sd(T2, SP, 8), ld(T2, SP, 24));
  assembler.emit(ld(T4, T0, controlBlock.beat), sd(T4, SP, 24));
  assembler.branch('bne', T2, T4, again);
  assembler.emit(addi(T4, 0, 1), sd(T4, T0, controlBlock.unattended));
  assembler.bind(drop);
  assembler.emit(addi(T2, 0, 1), addi(T4, T0, controlBlock.dropped), amoaddD(0, T2, T4), addi(LINK, LINK, 4));
  assembler.bind(done);
  if (isTimed) {
    assembler.emit(readTime(T2), ld(T4, SP, 16), sub(T2, T2, T4));
    assembler.emit(addi(T4, T0, controlBlock.waited), amoaddD(0, T2, T4));
  }
  assembler.emit(ld(T4, SP, 0), addi(SP, SP, waitFrame), jalr(0, LINK, 0));
  return { code: assembler.finish(), breakpoint };
};
