import type { Addr } from '../../base/addr.js';
import { Assembler, addi, ldr, str, T0, T1, T2, T3, T4, T5, T6 } from './assembler.js';
import { generalRegisters, SP } from './registers.js';

/**
 * The stack of a trampoline while it runs. Nothing is ever stored below sp. So an interrupt's handler may use the
 * stack there at any instruction, and may run trampolines itself. sp is always a multiple of 16.
 *
 *              +------------------+  sp of the function's caller: depth
 *              | (padding)        |
 *              | outer, outerPlan |  before this call, where it nests
 *              | kept 0 ...       |
 *      frame:  | original x30     |  where compilers put it. sp of the function while it is hooked
 *              +------------------+
 *              | x10              |
 *              | x16              |  sp for the jump back through a hop, which restores x16
 *              | x11, x12, x13    |  where they are used
 *              | x17, x9          |
 *              +------------------+  sp of the trampoline
 */
export interface TrampolineFrame {
  /** Offsets from sp of the values of registers that the trampoline has overwritten. */
  readonly saved: ReadonlyMap<number, number>;
  /** Offset of the hook frame. */
  readonly frame: number;
  /** How many kept registers may be read: none at an entry. */
  readonly kept: number;
  readonly depth: number;
  /** A register whose value is lost: x16 behind a far patch. */
  readonly lost: number | undefined;
}

const extraRegisters = [T4, T5, T6];

/** Bytes of a hook frame. The original return address is the first word. */
export function hookFrameSize(kept: number, nesting: boolean): number {
  return 16 * Math.ceil((1 + kept + (nesting ? 2 : 0)) / 2);
}

/** Where a kept word lies, or behind the last one the words of the outer poll, from the hook frame on. */
export const keptOffset = (index: number): number => 8 + 8 * index;

/** Where the saved registers lie; `extra` is for x11 to x13. */
export function slots(extra: boolean): { readonly saved: ReadonlyMap<number, number>; readonly size: number } {
  const size = extra ? 64 : 32;
  const saved = new Map([
    [T1, 0],
    [T2, 8],
    [T0, size - 16],
    [T3, size - 8],
  ]);
  if (extra) for (const [index, register] of extraRegisters.entries()) saved.set(register, 16 + 8 * index);
  return { saved, size };
}

/** A register by its target-description name; 31 is sp. Throws RangeError if it is no general register. */
export function registerNamed(name: string): number {
  const register = generalRegisters.indexOf(name);
  if (register < 0) throw new RangeError(`${name} is no general register`);
  return register;
}

/** The code of a trampoline, with the frame that it has there. */
export class TrampolineCode extends Assembler {
  frame: TrampolineFrame;

  constructor(at: Addr, frame: TrampolineFrame) {
    super(at);
    this.frame = frame;
  }

  /** The register with the value that this one had before the trampoline; `temporary` if it must be loaded. */
  original(register: number, temporary: number): number {
    const { saved, depth, lost } = this.frame;
    if (register === lost) throw new RangeError('x16 is gone behind a far patch');
    const slot = saved.get(register);
    if (slot !== undefined) this.emit(ldr(temporary, SP, slot));
    else if (register === SP) this.emit(addi(temporary, SP, depth));
    else return register;
    return temporary;
  }

  save(registers: readonly number[]): void {
    for (const register of registers) this.emit(str(register, SP, this.#slotOf(register)));
  }

  restore(registers: readonly number[]): void {
    for (const register of registers) this.emit(ldr(register, SP, this.#slotOf(register)));
  }

  /** Moves sp, if at all. */
  moveStack(bytes: number): void {
    if (bytes !== 0) this.emit(addi(SP, SP, bytes));
  }

  #slotOf(register: number): number {
    const slot = this.frame.saved.get(register);
    if (slot === undefined) throw new Error(`x${register} has no slot`);
    return slot;
  }
}
