import type { Addr } from '../../base/addr.js';
import { CodeWriter, type Label } from './code-buffer.js';

/**
 * The stack of a trampoline while it runs, on architectures with loads and stores. Nothing is ever stored below sp. So
 * an interrupt's handler may use the stack there at any instruction, and may run trampolines itself.
 *
 *              +------------------+  sp of the function's caller: depth
 *              | hook frame       |  the original return address where compilers put it, what is kept, and
 *      frame:  |                  |  where it nests outer and outerPlan. sp of the function while it is hooked
 *              +------------------+
 *              | fourth           |
 *              | first            |  sp for the jump back through a hop, which restores the first
 *              | fifth to seventh |  where they are used
 *              | second, third    |
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
  /** A register whose value is lost: the first behind a far patch. */
  readonly lost: number | undefined;
}

/** The registers that trampolines use, in their order. The first has the control block's address, at the beginning. */
export type Temporaries = readonly [number, number, number, number, number, number, number];

/** Where they are saved. `extra`: the last three, too. */
export function slotsOf(
  [first, second, third, fourth, ...others]: Temporaries,
  extra: boolean,
): { readonly saved: ReadonlyMap<number, number>; readonly size: number } {
  const size = extra ? 64 : 32;
  const saved = new Map([
    [second, 0],
    [third, 8],
    [first, size - 16],
    [fourth, size - 8],
  ]);
  if (extra) for (const [index, register] of others.entries()) saved.set(register, 16 + 8 * index);
  return { saved, size };
}

/** Bytes of a hook frame, a multiple of 16. */
export function hookFrameSize(kept: number, nesting: boolean): number {
  return 16 * Math.ceil((1 + kept + (nesting ? 2 : 0)) / 2);
}

const noFrame: TrampolineFrame = { saved: new Map(), frame: 0, kept: 0, depth: 0, lost: undefined };

/** Code in the making that may be a trampoline's, with the frame that it has there. */
export abstract class FramedCode extends CodeWriter {
  frame: TrampolineFrame;
  protected abstract readonly stackPointer: number;

  constructor(at: Addr, frame = noFrame) {
    super(at);
    this.frame = frame;
  }

  abstract emit(...words: readonly number[]): void;
  /** A word of 64 bits, from memory and into it. */
  abstract load(to: number, base: number, offset: number): void;
  abstract store(value: number, base: number, offset: number): void;
  abstract addTo(to: number, from: number, immediate: number): void;
  /** An address in 8 bytes of code. */
  abstract loadAddress(to: number, address: Addr): void;
  abstract jump(to: Label): void;
  abstract jumpFar(to: Addr, through: number): void;
  /** A jump to where this register leads, as a function returns. */
  abstract returnBy(register: number): void;

  /** The register with the value that this one had before the trampoline; `temporary` if it must be loaded. */
  original(register: number, temporary: number): number {
    const { saved, depth, lost } = this.frame;
    if (register === lost) throw new RangeError(`register ${register} is gone behind a far patch`);
    const slot = saved.get(register);
    if (slot !== undefined) this.load(temporary, this.stackPointer, slot);
    else if (register === this.stackPointer) this.addTo(temporary, this.stackPointer, depth);
    else return register;
    return temporary;
  }

  save(registers: readonly number[]): void {
    for (const register of registers) this.store(register, this.stackPointer, this.#slotOf(register));
  }

  restore(registers: readonly number[]): void {
    for (const register of registers) this.load(register, this.stackPointer, this.#slotOf(register));
  }

  /** The same code while only these registers are saved. */
  hasSaved(frame: TrampolineFrame, registers: readonly number[]): void {
    this.frame = { ...frame, saved: new Map([...frame.saved].filter(([register]) => registers.includes(register))) };
  }

  /** Moves sp, if at all. */
  moveStack(bytes: number): void {
    if (bytes !== 0) this.addTo(this.stackPointer, this.stackPointer, bytes);
  }

  #slotOf(register: number): number {
    const slot = this.frame.saved.get(register);
    if (slot === undefined) throw new Error(`register ${register} has no slot`);
    return slot;
  }
}
