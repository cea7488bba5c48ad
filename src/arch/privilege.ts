import type { Addr } from '../base/addr.js';
import type { MemoryReader, RegisterReader } from '../base/memory-reader.js';

/** Who runs on a hart: a program, the kernel, or the firmware below it. */
export type Privilege = 'user' | 'kernel' | 'firmware';

/** Where a hart is, as far as its registers tell. */
export interface Standing {
  readonly privilege: Privilege | undefined;
  /**
   * Physical address of the root of the page tables in use; undefined without paging. It identifies the address
   * space, without ASID and PCID.
   */
  readonly root: bigint | undefined;
}

/** The levels at which programs, kernels and firmware run. */
export interface PrivilegeModel {
  /** The registers that {@link standing} reads, among those that a target has. */
  readonly registers: readonly string[];
  /** Tells who runs on a hart and in which address space. */
  standing(registers: RegisterReader): Standing;
  /** Whether code has instructions that only kernels have. */
  isKernelCode(code: Uint8Array): boolean;
  /** Where traps return to, if registers hold that; undefined if the stack holds it. */
  readonly trapReturns?: TrapReturns;
  /**
   * Frame records of kernels that chain their stacks by frame pointers. `below`: the caller's frame pointer is saved
   * this many bytes below the address in `framePointer`. The chain leads from an interrupt handler's stack to the one
   * before.
   */
  readonly frameRecord?: { readonly framePointer: string; readonly below: number };
  /** How a hart comes into its kernel; undefined if stubs show the kernel's memory in user mode, too. */
  readonly kernelEntry?: {
    readonly registers: readonly string[];
    /** Where traps lead, by their kinds; undefined if the hart is in its kernel, or does not page. */
    find(registers: RegisterReader): readonly [Addr, ...Addr[]] | undefined;
    /** The registers as they would be if a hart in firmware, whose addresses are physical, were in the kernel. */
    fromFirmware(registers: RegisterReader): RegisterReader | undefined;
  };
  /** Firmware that runs below the kernel, on the same harts; undefined if there is none. */
  readonly belowFirmware?: BelowFirmware;
}

/** Return addresses of traps that are still being handled. */
interface TrapReturns {
  /** The registers that {@link find} reads, among those that a target has. */
  readonly registers: readonly string[];
  /**
   * The return addresses to which a handler may still return by these registers. A handler that lets interrupts in
   * has saved its return address before, because the next trap overwrites the register.
   */
  find(registers: RegisterReader): readonly bigint[];
}

/** What a hart in firmware has interrupted. */
export interface BelowFirmware {
  /** The register with the address of its trap handler. */
  readonly vector: string;
  /** The registers that {@link find} wants, by their target-description names. */
  readonly registers: readonly string[];
  /**
   * Undefined for a hart that is not in firmware. `nowhere`: nothing was interrupted. `pc`: only the address where it
   * goes on is known, not its registers.
   */
  find(
    registers: RegisterReader,
    physical: MemoryReader,
  ): Promise<
    { readonly from: 'nowhere' } | { readonly from: 'pc' | 'registers'; readonly below: RegisterReader } | undefined
  >;
}

/** The {@link Standing} of an architecture whose levels are not known. */
export const unknownStanding: Standing = { privilege: undefined, root: undefined };
