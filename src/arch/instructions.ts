import type { Addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';

/** What is known of instructions. */
export interface InstructionModel {
  /** Every instruction begins at a multiple of this many bytes. */
  readonly codeAlignment: number;
  /** The `kind` field of Z0/z0 for the instruction at the start of `code` (gdb's `breakpoint_kind_from_pc`). */
  breakpointKind(code: Uint8Array): number;
  /** Whether code begins with an instruction that software breakpoints use. */
  isBreakpoint(code: Uint8Array): boolean;
  /** Whether code begins with an instruction that waits for an interrupt. Undefined: not known. */
  waits?(code: Uint8Array): boolean;
  /** Emulates the instruction at `pc` without a single-step; undefined if only a step is right. It may need `prepare`. */
  emulate(code: Uint8Array, pc: Addr): EmulatedInstruction | undefined;
  /** Whether a watchpoint stops before the access or after it, on the processor and in QEMU's stubs. */
  readonly watchStops: 'before' | 'after';
  /** The memory accesses of the instruction at the start of `code`, if watchpoints stop before an access. */
  memoryAccess?(code: Uint8Array, registers: RegisterReader): MemoryAccess | undefined;
  /**
   * Loads what decoding needs beyond its own tables. Call it once, before the first use of the folder's decoder.
   */
  prepare(): Promise<void>;
}

/**
 * One instruction that is emulated from outside. While the target is stopped at it, the client writes what the
 * instruction would have written, and moves the pc. Compiled once per breakpoint, run at every hit.
 */
export interface EmulatedInstruction {
  /** Bytes of length in the target. */
  readonly length: number;
  /**
   * What must be read from memory before `effects` can be known (a load, a `ret`); length 0 if the instruction cannot
   * be emulated at this hit.
   */
  load?(registers: RegisterReader): { readonly address: Addr; readonly length: number };
  /** The instruction's effects, including the new pc; undefined if a register it needs is not known. */
  effects(registers: RegisterReader, loaded?: Uint8Array): Effects | undefined;
}

/** Memory that one instruction reads, writes, or both. */
export interface MemoryAccess {
  readonly address: Addr;
  /** In bytes. */
  readonly length: number;
  readonly reads: boolean;
  readonly writes: boolean;
}

export interface Effects {
  readonly registers: readonly { readonly name: string; readonly value: bigint }[];
  readonly memory: readonly { readonly address: Addr; readonly bytes: Uint8Array }[];
}

/** Bits of an instruction, from the high one to the low one. */
export function field(word: number, high: number, low: number): number {
  return (word >>> low) & (2 ** (high - low + 1) - 1);
}

export function bit(word: number, at: number): boolean {
  return ((word >>> at) & 1) === 1;
}

/** A field as a signed number. */
export function signedField(word: number, high: number, low: number): number {
  return (word << (31 - high)) >> (31 - high + low);
}

/** The four bytes of an instruction at an offset; undefined beyond the bytes. */
export function wordAt(code: Uint8Array, offset: number): number | undefined {
  if (offset < 0 || offset + 4 > code.length) return undefined;
  return new DataView(code.buffer, code.byteOffset, code.byteLength).getUint32(offset, true);
}
