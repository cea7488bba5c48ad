import type { Counter } from '../inject/probe-code.js';
import { type Assembler, add, addi, amoaddD, slli, srli, T0, T1, T2 } from './assembler.js';
import { extended } from './condition.js';
import { original, registerNamed, type TrampolineFrame } from './trampoline-frame.js';

/**
 * Adds one to a counter, or to the counter of a histogram that the register selects. Overwrites t0 and t1, and t2 for
 * a histogram.
 */
export function countUp(assembler: Assembler, frame: TrampolineFrame, { at, by }: Counter): void {
  if (by === undefined) assembler.loadAddress(T0, at);
  else {
    const register = original(assembler, frame, registerNamed(by.register), T0);
    const value = extended(assembler, register, by.size, by.signed);
    if (value !== T0) assembler.emit(addi(T0, value, 0));
    bucket(assembler, by.signed);
    assembler.emit(slli(T1, T1, 3));
    assembler.loadAddress(T0, at);
    assembler.emit(add(T0, T0, T1));
  }
  assembler.emit(addi(T1, 0, 1), amoaddD(0, T1, T0));
}

/** The bucket of t0 in t1. */
function bucket(assembler: Assembler, signed: boolean): void {
  const found = assembler.label();
  assembler.emit(addi(T1, 0, 0));
  if (signed) assembler.branch('blt', T0, 0, found);
  assembler.emit(addi(T1, 0, 1));
  assembler.branch('beq', T0, 0, found);
  assembler.emit(addi(T1, 0, 2));
  for (const half of [32, 16, 8, 4, 2, 1]) {
    const below = assembler.label();
    assembler.emit(srli(T2, T0, half));
    assembler.branch('beq', T2, 0, below);
    assembler.emit(addi(T0, T2, 0), addi(T1, T1, half));
    assembler.place(below);
  }
  assembler.place(found);
}
