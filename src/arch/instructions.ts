import type { Addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';

/** What is known of instructions. */
export interface InstructionModel {
  /** Every instruction begins at a multiple of so many bytes. */
  readonly codeAlignment: number;
  /** The `kind` field of Z0/z0 for the instruction at the start of `code` (gdb's `breakpoint_kind_from_pc`). */
  breakpointKind(code: Uint8Array): number;
  /** Code begins with an instruction that software breakpoints are. */
  isBreakpoint(code: Uint8Array): boolean;
  /** A way over the instruction at `pc` without a single-step, or undefined where only a step will do. */
  emulate(code: Uint8Array, pc: Addr): EmulatedInstruction | undefined;
  /** Whether a watchpoint stops before the access or after it, as the processor and QEMU's stubs do. */
  readonly watchStops: 'before' | 'after';
  /** What the instruction at the start of `code` is about to do with memory, where watchpoints stop before that. */
  memoryAccess?(code: Uint8Array, registers: RegisterReader): MemoryAccess | undefined;
  /**
   * Loads what decoding needs beyond its own tables; once, before the first use of the folder's decoder. `emulate`
   * does without.
   */
  prepare(): Promise<void>;
}

/**
 * One instruction carried out from outside: while the target stands at it, the client writes what the instruction
 * would have written, and moves the pc. Compiled once a breakpoint, run at every hit.
 */
export interface EmulatedInstruction {
  /** The instruction as text, for logs and `--dry-run`. */
  readonly text: string;
  /** Bytes of length in the target. */
  readonly length: number;
  /** The registers that `load` and `effects` ask for, by their target-description names. */
  readonly reads: readonly string[];
  /**
   * What must be read from memory before `effects` can tell (a load, a `ret`); length 0 when it cannot be carried out
   * at this hit.
   */
  load?(registers: RegisterReader): { readonly address: Addr; readonly length: number };
  /** What the instruction does, the new pc included; undefined when a register it needs is not known. */
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
