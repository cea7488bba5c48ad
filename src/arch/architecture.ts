import type { Addr } from '../base/addr.js';
import type { MemoryReader, RegisterReader } from '../base/memory-reader.js';
import type { FrameModel } from './frames/frame-model.js';
import type { InjectedCall } from './inject/injected-call.js';
import type { ProbeCode } from './inject/probe-code.js';
import type { AddressSpaces } from './pages/address-space.js';

/** What differs between the two architectures, and nothing else: one implementation a folder, the same file names in both. */
export interface Architecture {
  readonly name: 'riscv64' | 'x86_64';
  /** `e_machine` of an ELF for it (gABI, chapter 4): 243 or 62. */
  readonly elfMachine: number;
  /** What stubs call it in target.xml's `<architecture>`. */
  readonly gdbNames: readonly string[];
  /** Names of the registers every stop needs, as target descriptions spell them. */
  readonly pc: string;
  readonly sp: string;
  /** Registers that hold where a trap will return to, as target descriptions spell them; none where the stack holds it. */
  readonly trapRegisters: readonly string[];
  /**
   * Whether a watchpoint stops before the access or after it: RISC-V's triggers before (Debug Specification, `mcontrol.timing` 0, as debuggers
   * set it), x86's debug registers after (Intel SDM volume 3, 18.2.4). QEMU's stubs do the same.
   */
  readonly watchStops: 'before' | 'after';
  /** Integer argument registers in order (psABI calling conventions, which rustc's own ABI shares for scalars). */
  readonly arguments: readonly string[];
  /** Registers that carry the first and the second scalar of a result. */
  readonly results: readonly [string, string];
  /** The register with this DWARF number (psABI DWARF mapping), by its target-description name. */
  dwarfRegister(number: number): string | undefined;
  /** The `kind` field of Z0/z0 for the instruction at the start of `code`: 2 for a compressed RISC-V one, else 4; 1 on x86. */
  breakpointKind(code: Uint8Array): number;
  /** Code begins with the instruction that software breakpoints are: ebreak, int3. */
  isBreakpoint(code: Uint8Array): boolean;
  /** Where the return address lies when a function's first instruction is about to run. */
  readonly returnAddress:
    | { readonly in: 'register'; readonly name: string }
    | { readonly in: 'stack'; readonly offset: number };
  /** The stack pointer right after the function has returned, from the one at its first instruction. */
  stackPointerAfterReturn(atEntry: bigint): bigint;
  /** A way over the instruction at `pc` without a single-step, or undefined where only a step will do. */
  emulate(code: Uint8Array, pc: Addr): EmulatedInstruction | undefined;
  /** What the instruction at the start of `code` is about to do with memory, where watchpoints stop before that. */
  memoryAccess?(code: Uint8Array, registers: RegisterReader): MemoryAccess | undefined;
  /** What unwinding needs. */
  readonly frames: FrameModel;
  /** Machine code that notes events inside the target. */
  readonly probeCode?: ProbeCode;
  /** Calls of the program's functions that it does not make itself. */
  readonly injectedCall: InjectedCall;
  /** How page tables are read. */
  readonly addressSpaces: AddressSpaces;
  /** Firmware that runs below the kernel, on the same harts; undefined where there is none. */
  readonly belowFirmware?: BelowFirmware;
  /** Loads what decoding needs beyond its own tables; once, before the first use of the folder's decoder. `emulate` does without. */
  prepare(): Promise<void>;
}

/**
 * One instruction carried out from outside: while the target stands at it, the client writes what the instruction would have
 * written, and moves the pc. Compiled once a breakpoint, run at every hit.
 */
export interface EmulatedInstruction {
  /** The instruction as text, for logs and `--dry-run`. */
  readonly text: string;
  /** Bytes of length in the target. */
  readonly length: number;
  /** The registers that `load` and `effects` ask for, by their target-description names. */
  readonly reads: readonly string[];
  /** What must be read from memory before `effects` can tell (a load, a `ret`); length 0 when it cannot be carried out at this hit. */
  load?(registers: RegisterReader): { readonly address: Addr; readonly length: number };
  /** What the instruction does, the new pc included; undefined when a register it needs is not known. */
  effects(registers: RegisterReader, loaded?: Uint8Array): Effects | undefined;
}

/** What a hart in firmware has interrupted. */
export interface BelowFirmware {
  /** The registers that {@link find} wants, by their target-description names. */
  readonly registers: readonly string[];
  /** Undefined for a hart that is not in firmware. `nowhere`: nothing was interrupted; `pc`: of its registers only where it goes on is known. */
  find(
    registers: RegisterReader,
    physical: MemoryReader,
  ): Promise<
    { readonly from: 'nowhere' } | { readonly from: 'pc' | 'registers'; readonly below: RegisterReader } | undefined
  >;
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
