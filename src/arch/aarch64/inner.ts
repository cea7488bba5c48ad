import { Label } from '../inject/code-buffer.js';
import type { FrameNote, FrameNotes, InnerTrampoline, PointerPlace } from '../inject/trampolines.js';
import { type Assembler, add, addi, andOnes, eor, ldr, lsl, lsr, mov, str, sub, T0, T1, T2, T3 } from './assembler.js';
import { loadAt } from './condition.js';
import { registerNamed, ZR } from './registers.js';

/** Clobbers x10 if the offset is large. */
function value(code: Assembler, { register, offset, through }: PointerPlace, to: number): void {
  let from = code.original(registerNamed(register), to);
  if (through !== undefined) {
    loadAt(code, { size: 8, to, pointer: from, offset: through, temporary: T3 });
    from = to;
  }
  if (offset > -4096 && offset < 4096) {
    if (offset !== 0) code.emit(addi(to, from, offset));
    else if (from !== to) code.emit(mov(to, from));
    return;
  }
  code.loadConstant(T3, BigInt(offset));
  code.emit(add(to, from, T3));
}

/** Out: x9 = the frame and the number, x17 = the entry. Clobbers x16 and x10. */
function find(code: Assembler, { of, frame: place }: FrameNote, { at, countShift }: FrameNotes): void {
  value(code, place, T1);
  code.loadConstant(T2, BigInt(of) << 48n);
  code.emit(eor(T2, T2, T1));
  // Frames are multiples of 16. Stacks of threads often lie at equal distances.
  code.emit(lsr(T1, T1, 4), lsr(T3, T1, 8), eor(T1, T1, T3), lsr(T3, T3, 4), eor(T1, T1, T3));
  if (of % 128 !== 0) {
    code.loadConstant(T3, BigInt(of % 128));
    code.emit(eor(T1, T1, T3));
  }
  if (countShift > 0) code.emit(andOnes(T1, T1, countShift), lsl(T1, T1, 4));
  else code.emit(mov(T1, ZR));
  code.loadAddress(T3, at);
  code.emit(add(T1, T1, T3));
}

/** Takes a noted pointer into x16. */
export function take(code: Assembler, note: FrameNote, notes: FrameNotes): void {
  const [fits, done] = [new Label(), new Label()];
  find(code, note, notes);
  code.emit(ldr(T0, T1, 8), eor(T2, T2, T0), ldr(T3, T1, 0), sub(T3, T3, T2));
  code.branch('zero', T3, fits);
  code.emit(mov(T0, ZR));
  code.jump(done);
  code.bind(fits);
  code.emit(str(ZR, T1, 0));
  code.bind(done);
}

export function put(code: Assembler, note: InnerTrampoline['noted'][number], notes: FrameNotes): void {
  find(code, note, notes);
  value(code, note.pointer, T0);
  code.emit(str(T0, T1, 8), eor(T2, T2, T0), str(T2, T1, 0));
}
