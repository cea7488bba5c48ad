import type { Addr } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import type { MemoryReader, RegisterReader } from '../../base/memory-reader.js';
import type { PageFormat } from './page-walk.js';

/**
 * A leaf of a page table: `size` bytes from `virtual` on are mapped to `physical`. Rights are those of the whole path
 * to it.
 */
export interface Mapping {
  readonly virtual: Addr;
  readonly physical: Addr;
  readonly size: number;
  readonly readable: boolean;
  readonly writable: boolean;
  /** By the kernel. */
  readonly executable: boolean;
  /** Accessible in user mode. */
  readonly user: boolean;
}

/** A page table whose entries map 2 MiB each, 1 GiB in all. */
export interface LargePageTable {
  /** The first address that its first entry maps. */
  readonly virtual: Addr;
  /** Its 512 entries as they are in memory. */
  readonly entries: BigUint64Array;
}

export interface WantedLeaves {
  /** Those that overlap [from, to); `to` 0 is the end of the address space. */
  readonly from?: Addr;
  readonly to?: Addr;
  /** So many tables are read; 65,536 by default. */
  readonly mostTables?: number;
  /** Leaves for which it is false are left out, which costs little. */
  readonly wants?: (leaf: Mapping) => boolean;
}

/** How one hart sees memory at one stop. Tables are read once, so later writes to them do not show. */
export interface AddressSpace {
  /** `off` if addresses are physical; else the specification's name of the mode. */
  readonly scheme: string;
  /** Whether the hart runs in user mode: its page table is then a process's, which need not hold the kernel. */
  readonly user: boolean;
  /** Undefined if addresses are physical. */
  readonly pages: PageFormat | undefined;
  /**
   * The leaf for an address; undefined if the address is not mapped, or if its path is not allowed by the
   * architecture.
   */
  translate(address: Addr): Promise<Mapping | undefined>;
  /**
   * All leaves that `WantedLeaves` asks for, in order of address. Throws `PAGE_TABLES_TOO_LARGE` after too many
   * tables, because tables may contain each other.
   */
  mappings(wanted?: WantedLeaves): AsyncGenerator<Mapping>;
  /**
   * The table of 2 MiB entries on the path of an address; undefined if there is none (not mapped, or mapped by a
   * larger page).
   */
  largePageTable(address: Addr): Promise<LargePageTable | undefined>;
  /**
   * An entry of a {@link LargePageTable} for the kernel's own use. `code` can be executed and not written, `data` the
   * other way round; undefined if these cannot be told apart.
   */
  largePageEntry(physical: Addr, rights: 'code' | 'data'): bigint | undefined;
  /** A leaf of the kernel's own, whose page can be executed too. */
  executableEntry(entry: bigint): bigint;
  /** An entry of a {@link LargePageTable} that leads to a table of 512 entries of 4 KiB, for the kernel's own use. */
  tableEntry(physical: Addr): bigint;
}

/** `pages`: undefined if addresses are physical. `user`: see {@link AddressSpace}. */
export interface Translation {
  readonly pages: PageFormat | undefined;
  readonly user: boolean;
}

/** How entries of page tables are known without a root to walk from. */
export interface PageSearch {
  /** How many levels of tables a kernel may use. */
  readonly levels: readonly number[];
  /** The bit of an entry's low word that says that it leads anywhere. */
  readonly valid: number;
  /** Where the page number begins in the low word. */
  readonly shift: number;
  /** Its bits in the high word. */
  readonly highBits: number;
}

/** How page tables are read, as `page-walk.ts` walks them. */
export interface AddressSpaces {
  /** The registers that {@link of} wants, by their target-description names. */
  readonly registers: readonly string[];
  /**
   * The address space that registers describe; it is read from physical memory on request. Returns a sentence if it
   * cannot be known: a register is missing, or a paging mode is not supported.
   */
  of(registers: RegisterReader, physical: MemoryReader): AddressSpace | Refusal;
  /** How the same address space is translated, for who walks it in memory that needs no waiting. */
  format(registers: RegisterReader): Translation | Refusal;
  /** No kernel of this architecture runs without paging. */
  readonly alwaysPages: boolean;
  /**
   * Offsets behind the instructions of this code that may turn paging on, or put another table into use. Data that
   * looks like one is among them.
   */
  tableChanges(code: Uint8Array): readonly number[];
  /**
   * The same registers, with another root table. A hart begins in code that is copied to where no ELF has it, and its
   * first table is one of the program's. Missing where a program's own code sets a hart's first table.
   */
  withRoot?(registers: RegisterReader, root: Addr): RegisterReader;
  /**
   * Offsets where this code, which a hart with these registers runs, gives guests a second page table, or runs them: it
   * is a hypervisor. Data that looks like such an instruction is among them. Missing where that is not known.
   */
  guestPlaces?(registers: RegisterReader, code: Uint8Array): readonly number[];
  /** Bits of an entry that the processor may set: accessed and dirty. */
  readonly hardwareBits: bigint;
  readonly search: PageSearch;
}
