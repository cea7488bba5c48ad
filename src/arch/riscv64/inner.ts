import { Label } from '../inject/code-buffer.js';
import type { FrameNote, FrameNotes, InnerTrampoline, PointerPlace } from '../inject/trampolines.js';
import { type Assembler, add, addi, andi, ld, sd, slli, srli, T0, T1, T2, T3, xor, xori } from './assembler.js';
import { loadAt } from './record-code.js';
import { registerNamed } from './registers.js';

/** Clobbers t3 if the offset is large. */
function value(code: Assembler, { register, offset, through }: PointerPlace, to: number): void {
  let from = code.original(registerNamed(register), to);
  if (through !== undefined) {
    loadAt(code, 8, to, from, through);
    from = to;
  }
  if (offset >= -2048 && offset < 2048) {
    if (from !== to || offset !== 0) code.emit(addi(to, from, offset));
    return;
  }
  code.loadConstant(T3, BigInt(offset));
  code.emit(add(to, from, T3));
}

/** Out: t2 = the frame and the number, t1 = the entry. Clobbers t0 and t3. */
function find(code: Assembler, { of, frame: place }: FrameNote, { at, countShift }: FrameNotes): void {
  value(code, place, T1);
  code.loadConstant(T2, BigInt(of) << 48n);
  code.emit(xor(T2, T2, T1));
  // Frames are multiples of 16. Stacks of threads often lie at equal distances.
  code.emit(srli(T1, T1, 4), srli(T3, T1, 8), xor(T1, T1, T3), srli(T3, T3, 4), xor(T1, T1, T3));
  if (of % 128 !== 0) code.emit(xori(T1, T1, of % 128));
  code.emit(andi(T1, T1, 2 ** countShift - 1), slli(T1, T1, 4));
  code.loadAddress(T3, at);
  code.emit(add(T1, T1, T3));
}

/** Takes a noted pointer into t0. */
export function take(code: Assembler, note: FrameNote, notes: FrameNotes): void {
  const [fits, done] = [new Label(), new Label()];
  find(code, note, notes);
  code.emit(ld(T0, T1, 8), xor(T2, T2, T0), ld(T3, T1, 0));
  code.branch('beq', T2, T3, fits);
  code.emit(addi(T0, 0, 0));
  code.jump(done);
  code.bind(fits);
  code.emit(sd(0, T1, 0));
  code.bind(done);
}

export function put(code: Assembler, note: InnerTrampoline['noted'][number], notes: FrameNotes): void {
  find(code, note, notes);
  value(code, note.pointer, T0);
  code.emit(sd(T0, T1, 8), xor(T2, T2, T0), sd(T2, T1, 0));
}
