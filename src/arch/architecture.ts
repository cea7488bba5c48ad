import type { CallingConvention } from './calls.js';
import type { CodeFlow } from './code-flow.js';
import type { CodeReferences } from './code-references.js';
import type { CodeFrameModel, FrameModel } from './frames/frame-model.js';
import type { ProbeCode } from './inject/probe-code.js';
import type { InstructionModel } from './instructions.js';
import type { LinuxModel } from './linux.js';
import type { GuestClock, PowerOffModel, ResetModel } from './machine.js';
import type { AddressSpaces } from './pages/address-space.js';
import type { PrivilegeModel } from './privilege.js';
import type { SystemRegisters } from './system-registers.js';
import type { TrapModel } from './traps.js';

/**
 * An architecture: all that differs between processors. Words have 8 bytes and are little-endian, in ELFs and
 * everywhere else; what one of 4 bytes would need stands in docs/internals/rooms.md, "Words of four bytes".
 *
 * To add one, make a folder beside `riscv64`, and put its object into the list of `index.ts`. A program that uses the
 * library hands the object to `registerArchitecture` instead. Members can be added one after the other:
 *
 *   bare minimum: to record with the stop engine
 *       Identity, RegisterModel, CallingConvention and InstructionModel, without what is optional there.
 *       `emulate` may return undefined: the instruction under a breakpoint is then single-stepped.
 *       C functions with structs as parameters: `aggregates`. Floating-point numbers: `floats`. Pairs of registers:
 *       `alignsPairs`. A result's address in a register of its own: `resultAddress`.
 *       Compiler helpers: `irregularFunctions`.
 *       Position-independent programs: the type of relative relocations in `elf/loaded-image.ts`. Object files: all
 *       types of relocations of data and debug info in `elf/relocations.ts`.
 *   to start QEMU for a kernel without its command line: `kernelCommand`, and `loadAddress` if QEMU loads kernels
 *       elsewhere than their ELFs say
 *   to follow pointers whose top bits are no part of the address: `pointerBits`
 *   to read registers of a stub without target.xml: `registerDefaults`
 *   to support unwinding (`bt`, `tasks`, `--bt`): `frames`. By call frame information alone it needs no `code`; with
 *       `codeFrames` it reads code too, and trap handlers are found that must not be probed.
 *   to trace polls of Futures that were inlined into other functions: `codeFlow`
 *   to trace what a stub overlooks of watched memory, where watchpoints stop before accesses: `memoryAccess`
 *   to know a hart that waits for an interrupt, which must not be stepped: `waits`
 *   to read the guest's clock: `clocks`. Else times are those of the host while the guest ran.
 *   to tell user mode, kernel and firmware apart: `privilege`
 *   to leave floating-point arguments out while a kernel has the unit off: `floatUnit`
 *   to support page tables (stacks of interrupted kernels, memory for trampolines): `addressSpaces`
 *   to support the engine without stops: `references` and `codeFlow`, because nothing is patched unless all branches
 *       are known
 *       on machines: `probeCode`, `privilege` and `addressSpaces`; memory beside RAM by `qemuMachines`
 *       in Linux processes: `probeCode.process` and `linux.systemCalls`
 *   to go on recording after the machine is reset: `reset`
 *   to read the last records of a machine that ends itself: `powerOff`, with `codeFlow`
 *   to decode system registers in `doctor`: `systemRegisters`
 *   to trace interrupts, faults and system calls of a kernel: `traps`, with `privilege`
 *   to see a Linux process map code without interrupting it, and to remove a gdbserver's breakpoints: `linux`
 *
 * A missing member means "not supported". Code that needs the member says so, and never assumes another
 * architecture's. `npm run imports` says which optional member has no line here.
 */
export interface Architecture extends Identity, RegisterModel, CallingConvention, InstructionModel, Capabilities {
  /** Bits of a pointer that say where it leads: above the highest may be a tag. Missing: all. */
  readonly pointerBits?: number;
  /** Where QEMU loads the segment of a kernel's ELF with this physical address, if it is not there. */
  loadAddress?(physical: bigint): bigint;
}

/** An architecture with every capability. */
export type CompleteArchitecture = Architecture & Required<Capabilities> & { readonly frames: CodeFrameModel };

/** The names of an architecture. */
export interface Identity {
  /** Its name in QEMU's programs (`qemu-system-NAME`) and in traces. */
  readonly name: string;
  /** `e_machine` of an ELF for it (gABI, chapter 4). */
  readonly elfMachine: number;
  /** Its names in the `<architecture>` of stubs' target.xml. */
  readonly gdbNames: readonly string[];
}

/** The optional members of an architecture, see {@link Architecture}. */
export interface Capabilities {
  /** How QEMU starts a kernel if nobody says it; `-kernel FILE` follows. */
  readonly kernelCommand?: readonly string[];
  readonly registerDefaults?: RegisterDefaults;
  /** What unwinding needs. */
  readonly frames?: FrameModel;
  /** Where control goes in a function. */
  readonly codeFlow?: CodeFlow;
  /** Where the branches of a whole text lead, quickly. Without it nothing is patched. */
  readonly references?: CodeReferences;
  /** Where the guest's time can be read, the best place first. */
  readonly clocks?: readonly GuestClock[];
  readonly privilege?: PrivilegeModel;
  /** A register that says whether a machine's floating-point unit is off: its registers are nobody's then. */
  readonly floatUnit?: { readonly register: string; isOff(value: bigint): boolean; has(name: string): boolean };
  /** How page tables are read. */
  readonly addressSpaces?: AddressSpaces;
  /** Machine code that records events inside the target. */
  readonly probeCode?: ProbeCode;
  /** QEMU's machines of it that are known, by the name of their kind: `virt`. */
  readonly qemuMachines?: readonly string[];
  readonly reset?: ResetModel;
  readonly powerOff?: PowerOffModel;
  readonly systemRegisters?: SystemRegisters;
  readonly traps?: TrapModel;
  readonly linux?: LinuxModel;
}

/** The registers of an architecture, by the names that target descriptions use. */
export interface RegisterModel {
  /** The registers that every stop needs. */
  readonly pc: string;
  readonly sp: string;
  /** All that hold integers. */
  readonly generalRegisters: readonly string[];
  /** The register with this DWARF number (psABI DWARF mapping); undefined if target descriptions have none. */
  dwarfRegister(number: number): string | undefined;
}

/** What is known about registers without a stub's target description. */
export interface RegisterDefaults {
  /** The registers in the answer to `g` of a stub that does not describe them: in gdb's order, numbered from 0. */
  readonly layout: readonly { readonly name: string; readonly bits: number }[];
  /** Names that stubs and assemblers use for the same register, one list for each. */
  readonly aliases: readonly (readonly string[])[];
}
