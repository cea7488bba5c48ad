import type { Addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';

/** What a trap is: an interrupt, an access that has no right to its memory, a request of a program, or anything else. */
export type TrapKind = 'irq' | 'fault' | 'syscall' | 'trap';

/** Memory that was read at a stop; undefined if it cannot be read. */
export interface TrapMemory {
  bytes(address: Addr, length: number): Uint8Array | undefined;
}

export interface TrapRead {
  readonly address: Addr;
  readonly length: number;
}

/** What a trap interrupts, and what a return from one goes on with. */
export interface Interrupted {
  readonly pc: Addr;
  readonly stackPointer: bigint;
  /** A program below the kernel. */
  readonly isUser: boolean;
}

/** A hart has just left what it ran. */
export interface Trap {
  readonly kind: TrapKind;
  /** As the architecture's manual names the cause, in one word: `supervisor_timer`. Of a system call undefined. */
  readonly name: string | undefined;
  /** Of a system call. */
  readonly number?: bigint | undefined;
  /** A system call whose numbers are not those of Linux' 64-bit programs. */
  readonly isOther?: boolean;
  /** Of a system call, in order. */
  readonly arguments?: readonly bigint[];
  /** The address of a fault's access. */
  readonly address?: bigint | undefined;
  readonly from: Interrupted;
}

/** Where traps enter. */
export interface TrapEntry {
  readonly address: Addr;
  /** What enters there, where that is always the same. */
  readonly kind?: TrapKind;
  /** Memory that {@link trap} needs. */
  reads(registers: RegisterReader): readonly TrapRead[];
  /** Undefined if a register that it needs is not known. */
  trap(registers: RegisterReader, memory: TrapMemory): Trap | undefined;
}

/** An instruction that ends a trap. */
export interface TrapExit {
  readonly address: Addr;
  reads(registers: RegisterReader): readonly TrapRead[];
  /** What goes on; undefined if a register that it needs is not known. */
  to(registers: RegisterReader, memory: TrapMemory): Interrupted | undefined;
}

/** A table in memory that has the entries, and may be filled later. */
export interface TrapTable extends TrapRead {
  entries(bytes: Uint8Array): readonly TrapEntry[];
}

/** An instruction that says where traps enter from now on. */
export interface TrapSetter {
  readonly address: Addr;
  /**
   * It sets much else too, and is run often. The entry is set once in a boot, by one of those with this name: then the
   * others need not be seen any more.
   */
  readonly once?: string;
  reads(registers: RegisterReader): readonly TrapRead[];
  /** The entries, or the table that has them. */
  sets(registers: RegisterReader, memory: TrapMemory): readonly TrapEntry[] | { readonly table: TrapTable };
}

/** How harts come into their kernel, and leave it. */
export interface TrapModel {
  /** Those that the members of entries, exits and setters read, in addition to the general ones. */
  readonly registers: readonly string[];
  /** Offsets of bytes that look like a setter or an exit: more than there are, none missing. */
  seek(code: Uint8Array): readonly number[];
  /** Those in the code of one function. The decoder must be prepared. */
  find(code: Uint8Array, start: Addr): { readonly setters: readonly TrapSetter[]; readonly exits: readonly TrapExit[] };
  /** Whether code begins with an instruction that ends a trap. */
  isExit(code: Uint8Array): boolean;
  /** The entries that a hart's registers name; none if they do not say. */
  current(registers: RegisterReader): readonly TrapEntry[];
  /** The register with what a system call returns. */
  readonly result: string;
}
