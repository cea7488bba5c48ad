import type { Label } from './code-buffer.js';
import type { FramedCode, Size } from './framed-code.js';
import { type Condition, decided, type IntegerIn } from './record-parts.js';

/** Jumps to `otherwise` unless the condition holds for the integer in a register. */
type Compare<Code extends FramedCode> = (code: Code, condition: Condition, left: number, otherwise: Label) => void;

/** Jumps to `otherwise` unless a condition holds. It overwrites the first two temporaries, and what `compare` does. */
export function checkBy<Code extends FramedCode>(compare: Compare<Code>) {
  return (code: Code, condition: Condition, otherwise: Label): void => {
    const holds = decided(condition);
    if (holds === undefined) compare(code, condition, integer(code, condition, otherwise), otherwise);
    else if (!holds) code.jump(otherwise);
    // There must be an integer all the same.
    else if (condition.behind) integer(code, condition, otherwise);
  };
}

/**
 * The register with an integer; overwrites the first two temporaries. Jumps to `otherwise` if a pointer on the way
 * leads nowhere.
 */
export function integer(
  code: FramedCode,
  { register: name, size, signed, behind }: IntegerIn,
  otherwise: Label,
): number {
  const { temporaries, registerNamed, extend } = code.is;
  const [t0, t1] = temporaries;
  const register = code.original(registerNamed(name), t0);
  if (behind) {
    const pointer = follow(code, register, behind.through, t1, otherwise);
    verifyPointer(code, pointer, size, t1, otherwise);
    loadAt(code, { size, signed, to: t0, pointer, offset: behind.offset, temporary: t1 });
    return t0;
  }
  if (size === 8) return register;
  code.emit(...extend(t0, register, size, signed));
  return t0;
}

/**
 * Follows references, each of which lies in what the one before points to. The last one is in the first temporary, if
 * there are any.
 */
export function follow(
  code: FramedCode,
  register: number,
  through: readonly number[],
  temporary: number,
  wrong: Label,
): number {
  const [t0] = code.is.temporaries;
  let pointer = register;
  for (const offset of through) {
    verifyPointer(code, pointer, 8, temporary, wrong);
    loadAt(code, { size: 8, to: t0, pointer, offset, temporary });
    pointer = t0;
  }
  return pointer;
}

/** Goes to `wrong` for a pointer that is null or no multiple of `align`. */
export function verifyPointer(code: FramedCode, pointer: number, align: number, temporary: number, wrong: Label): void {
  code.branchZero('zero', pointer, wrong);
  if (align === 1) return;
  code.emit(code.is.lowBits(temporary, pointer, Math.log2(align)));
  code.branchZero('not-zero', temporary, wrong);
}

interface LoadedAt {
  readonly size: Size;
  readonly signed?: boolean;
  readonly to: number;
  readonly pointer: number;
  readonly offset: number;
  /** For offsets that no access has room for; it may be `to`, but not the pointer. */
  readonly temporary: number;
}

/** Loads from any offset. */
export function loadAt(code: FramedCode, { size, signed = false, to, pointer, offset, temporary }: LoadedAt): void {
  const { reaches, access, add } = code.is;
  const op = signed ? 'signed' : 'load';
  if (reaches(offset, size)) {
    code.emit(access(op, size, to, pointer, offset));
    return;
  }
  code.loadConstant(temporary, BigInt(offset));
  code.emit(add(temporary, temporary, pointer), access(op, size, to, temporary, 0));
}
