import { addOffset } from '../../base/addr.js';
import type { Counter } from '../inject/record-parts.js';
import { type Assembler, add, addi, amoaddD, type Label, slli, sltu, srai, srli, T0, T1, T2 } from './assembler.js';
import { check, integer } from './condition.js';
import type { TrampolineFrame } from './trampoline-frame.js';

/** Adds a call to the counter's words, if its conditions hold. Overwrites t0, t1 and, if not only calls count, t2. */
export function countUp(assembler: Assembler, frame: TrampolineFrame, counter: Counter): void {
  const { at, when } = counter;
  const done = assembler.label();
  for (const condition of when) check(assembler, frame, condition, done);
  const value = counter.kind === 'calls' ? 0 : integer(assembler, frame, counter.of, done);
  if (counter.kind === 'sum') addUp(assembler, counter, value, done);
  else if (counter.kind === 'calls') {
    assembler.loadAddress(T0, at);
    assembler.emit(addi(T1, 0, 1), amoaddD(0, T1, T0));
  } else {
    if (value !== T0) assembler.emit(addi(T0, value, 0));
    bucket(assembler, counter.of.signed);
    assembler.emit(slli(T1, T1, 3));
    assembler.loadAddress(T0, at);
    assembler.emit(add(T0, T0, T1), addi(T1, 0, 1), amoaddD(0, T1, T0));
  }
  assembler.place(done);
}

/** The high word changes by the carry out of the low one, and by -1 if the value is below 0: mostly not at all. */
function addUp(assembler: Assembler, { at, of }: Counter & { readonly kind: 'sum' }, value: number, done: Label): void {
  assembler.loadAddress(T1, at);
  assembler.emit(addi(T2, 0, 1), amoaddD(0, T2, T1));
  assembler.loadAddress(T1, addOffset(at, 8));
  assembler.emit(amoaddD(T2, value, T1), add(T2, T2, value), sltu(T2, T2, value));
  if (of.signed) assembler.emit(srai(T0, value, 63), add(T2, T2, T0));
  assembler.branch('beq', T2, 0, done);
  assembler.emit(addi(T1, T1, 8), amoaddD(0, T2, T1));
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
