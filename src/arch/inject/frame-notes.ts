import { Label } from './code-buffer.js';
import type { FramedCode } from './framed-code.js';
import { loadAt } from './integers.js';
import type { FrameNote, FrameNotes, InnerTrampoline, PointerPlace } from './trampolines.js';

/** Clobbers the fourth temporary if an offset is large. */
function value(code: FramedCode, { register, offset, through }: PointerPlace, to: number): void {
  const { temporaries, registerNamed, reaches, addi, add, move } = code.is;
  const t3 = temporaries[3];
  let from = code.original(registerNamed(register), to);
  if (through !== undefined) {
    loadAt(code, { size: 8, to, pointer: from, offset: through, temporary: t3 });
    from = to;
  }
  if (offset === 0) {
    if (from !== to) code.emit(move(to, from));
  } else if (reaches(offset, 1)) code.emit(addi(to, from, offset));
  else {
    code.loadConstant(t3, BigInt(offset));
    code.emit(add(to, from, t3));
  }
}

/** Out: third temporary = the frame and the number, second = the entry. Clobbers the first and the fourth. */
function find(code: FramedCode, { of, frame: place }: FrameNote, { at, countShift }: FrameNotes): void {
  const { temporaries, zero, xor, right, left, lowBits, move, add } = code.is;
  const [, t1, t2, t3] = temporaries;
  value(code, place, t1);
  code.loadConstant(t2, BigInt(of) << 48n);
  code.emit(xor(t2, t2, t1));
  // Frames are multiples of 16. Stacks of threads often lie at equal distances.
  code.emit(right(t1, t1, 4), right(t3, t1, 8), xor(t1, t1, t3), right(t3, t3, 4), xor(t1, t1, t3));
  if (of % 128 !== 0) {
    code.loadConstant(t3, BigInt(of % 128));
    code.emit(xor(t1, t1, t3));
  }
  if (countShift > 0) code.emit(lowBits(t1, t1, countShift), left(t1, t1, 4));
  else code.emit(move(t1, zero));
  code.loadAddress(t3, at);
  code.emit(add(t1, t1, t3));
}

/** Takes a noted pointer into the first temporary. */
export function take(code: FramedCode, note: FrameNote, notes: FrameNotes): void {
  const { temporaries, zero, xor, sub, move } = code.is;
  const [t0, t1, t2, t3] = temporaries;
  const [fits, done] = [new Label(), new Label()];
  find(code, note, notes);
  code.load(t0, t1, 8);
  code.emit(xor(t2, t2, t0));
  code.load(t3, t1, 0);
  code.emit(sub(t3, t3, t2));
  code.branchZero('zero', t3, fits);
  code.emit(move(t0, zero));
  code.jump(done);
  code.bind(fits);
  code.store(zero, t1, 0);
  code.bind(done);
}

export function put(code: FramedCode, note: InnerTrampoline['noted'][number], notes: FrameNotes): void {
  const { temporaries, xor } = code.is;
  const [t0, t1, t2] = temporaries;
  find(code, note, notes);
  value(code, note.pointer, t0);
  code.store(t0, t1, 8);
  code.emit(xor(t2, t2, t0));
  code.store(t2, t1, 0);
}
