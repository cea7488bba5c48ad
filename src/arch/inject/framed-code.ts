import type { Addr } from '../../base/addr.js';
import { someBytes } from '../../base/memory-reader.js';
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

/**
 * What architectures with loads and stores have, and code that is shared by them is made of: registers by their roles,
 * and instructions with the same meaning, as words of code.
 */
export interface LoadStore {
  readonly temporaries: Temporaries;
  /** The registers of the return address, of the stack pointer, and the one that stores zeros. */
  readonly link: number;
  readonly stackPointer: number;
  readonly zero: number;
  readonly registerNamed: (name: string) => number;
  /** Whether an access has room for this offset. */
  readonly reaches: (offset: number, size: Size) => boolean;
  /** `load` clears the bits above, `signed` extends the sign. */
  readonly access: (
    op: 'load' | 'signed' | 'store',
    size: Size,
    register: number,
    base: number,
    offset: number,
  ) => number;
  readonly addi: (to: number, from: number, immediate: number) => number;
  readonly move: (to: number, from: number) => number;
  readonly add: (to: number, a: number, b: number) => number;
  readonly sub: (to: number, a: number, b: number) => number;
  readonly and: (to: number, a: number, b: number) => number;
  readonly xor: (to: number, a: number, b: number) => number;
  readonly left: (to: number, from: number, by: number) => number;
  readonly right: (to: number, from: number, by: number) => number;
  /** The low bytes of a register as 64 bits. */
  readonly extend: (to: number, from: number, size: 1 | 2 | 4, signed: boolean) => readonly number[];
  /** All ones if `a` is below `b`, both of them addresses of one object; else 0. */
  readonly onesIfBelow: (to: number, a: number, b: number) => readonly number[];
  /** So many of the lowest bits. */
  readonly lowBits: (to: number, from: number, count: number) => number;
  /** A jump to where this register leads, as a function returns. */
  readonly returnBy: (register: number) => number;
}

export type Size = 1 | 2 | 4 | 8;

const noFrame: TrampolineFrame = { saved: new Map(), frame: 0, kept: 0, depth: 0, lost: undefined };

/** Code in the making that may be a trampoline's, with the frame that it has there. */
export abstract class FramedCode extends CodeWriter {
  frame: TrampolineFrame;
  abstract readonly is: LoadStore;

  constructor(at: Addr, frame = noFrame) {
    super(at);
    this.frame = frame;
  }

  /** An address in 8 bytes of code. */
  abstract loadAddress(to: number, address: Addr): void;
  abstract loadConstant(to: number, value: bigint): void;
  abstract jump(to: Label): void;
  /** Keeps every register. */
  abstract jumpNear(to: Addr): void;
  abstract jumpFar(to: Addr, through: number): void;
  abstract branchZero(op: 'zero' | 'not-zero', register: number, to: Label): void;
  /** Where `a` is below `b`, both of them below 2^63. Overwrites `a`. */
  abstract branchBelow(a: number, b: number, to: Label): void;

  emit(...words: readonly number[]): void {
    for (let i = 0; i < words.length; i++) this.code.word(words[i] as number);
  }

  /** A word of 64 bits, from memory and into it. */
  load(to: number, base: number, offset: number): void {
    this.code.word(this.is.access('load', 8, to, base, offset));
  }

  store(value: number, base: number, offset: number): void {
    this.code.word(this.is.access('store', 8, value, base, offset));
  }

  /** An instruction that depends on how far a label is from it. */
  protected later(label: Label, encode: (offset: number) => number): void {
    const at = this.code.length;
    this.resolveLater(at, label, (to) => encode(to - at));
    this.code.word(0);
  }

  /** The register with the value that this one had before the trampoline; `temporary` if it must be loaded. */
  original(register: number, temporary: number): number {
    const { saved, depth, lost } = this.frame;
    if (register === lost) throw new RangeError(`register ${register} is gone behind a far patch`);
    const slot = saved.get(register);
    if (slot !== undefined) this.load(temporary, this.is.stackPointer, slot);
    else if (register === this.is.stackPointer) this.code.word(this.is.addi(temporary, this.is.stackPointer, depth));
    else return register;
    return temporary;
  }

  save(registers: readonly number[]): void {
    for (const register of registers) this.store(register, this.is.stackPointer, this.#slotOf(register));
  }

  restore(registers: readonly number[]): void {
    for (const register of registers) this.load(register, this.is.stackPointer, this.#slotOf(register));
  }

  /** The same code while only these registers are saved. */
  hasSaved(frame: TrampolineFrame, registers: readonly number[]): void {
    this.frame = { ...frame, saved: new Map([...frame.saved].filter(([register]) => registers.includes(register))) };
  }

  /** Moves sp, if at all. */
  moveStack(bytes: number): void {
    const { addi, stackPointer } = this.is;
    if (bytes !== 0) this.code.word(addi(stackPointer, stackPointer, bytes));
  }

  #slotOf(register: number): number {
    const slot = this.frame.saved.get(register);
    if (slot === undefined) throw new Error(`register ${register} has no slot`);
    return slot;
  }
}

/** What a tracer has inserted between a frame and its caller by replacing a return address. */
export interface HookFrame {
  /** Where the original return address lies, in bytes from the stack pointer after the frame's own return. */
  readonly offset: number;
  /** Bytes of stack that are freed before the caller goes on. */
  readonly size: number;
}

/**
 * The mark before code that calls return to: `rsphook:`, then offset and size of the hook frame, 32 bits each. By it
 * a later command finds the caller, whoever has left that code.
 */
export const hookMarkBytes = 16;
const text = new TextEncoder().encode('rsphook:');

export function hookMark({ offset, size }: HookFrame): Uint8Array {
  const bytes = someBytes(hookMarkBytes);
  bytes.set(text);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  view.setUint32(text.length, offset, true);
  view.setUint32(text.length + 4, size, true);
  return bytes;
}

/** The hook frame that a mark names; undefined for other bytes. */
export function markedHook(bytes: Uint8Array): HookFrame | undefined {
  if (bytes.length < hookMarkBytes || !text.every((byte, i) => bytes[i] === byte)) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [offset, size] = [view.getUint32(text.length, true), view.getUint32(text.length + 4, true)];
  return offset < size && size <= mostFreed ? { offset, size } : undefined;
}

/** A hook frame keeps a few words. */
const mostFreed = 1024;
