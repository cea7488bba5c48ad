import type { Addr } from '../../base/addr.js';
import type { MemoryReader, RegisterReader } from '../../base/memory-reader.js';

/** A leaf of a page table: `size` bytes from `virtual` on lie at `physical`. Rights are those of the whole path to it. */
export interface Mapping {
  readonly virtual: Addr;
  readonly physical: Addr;
  readonly size: number;
  readonly readable: boolean;
  readonly writable: boolean;
  readonly executable: boolean;
  /** For user mode; on RISC-V then not executable in supervisor mode. */
  readonly user: boolean;
}

/** A page table whose entries map 2 MiB each, 1 GiB in all. */
export interface LargePageTable {
  /** Physical address of its first entry. */
  readonly physical: Addr;
  /** What its first entry maps. */
  readonly virtual: Addr;
  /** Its 512 entries as they stand in memory. */
  readonly entries: BigUint64Array;
}

/** How one hart sees memory at one stop. Tables that were read are not read again: what is written to them later does not show. */
export interface AddressSpace {
  /** `off` where addresses are physical, else as the specification names it. */
  readonly scheme: string;
  /** Whether the hart runs in user mode: its page table is then a process's, which need not hold the kernel. */
  readonly user: boolean;
  /** The leaf through which an address goes; undefined where it is not mapped, or its path is not what the architecture allows. */
  translate(address: Addr): Promise<Mapping | undefined>;
  /**
   * All leaves that overlap [from, to), in order of address; `to` 0 is the end of the address space. Throws `PAGE_TABLES_TOO_LARGE` after
   * `mostTables` tables (65,536 by default), as tables that contain each other would have.
   */
  mappings(from?: Addr, to?: Addr, mostTables?: number): AsyncGenerator<Mapping>;
  /** The table of 2 MiB entries on the path of an address; undefined where there is none (not mapped, or by a larger page). */
  largePageTable(address: Addr): Promise<LargePageTable | undefined>;
  /** An entry of a {@link LargePageTable} for the kernel's own use: `code` can be executed and not written, `data` the other way round; undefined where these cannot be told apart. */
  largePageEntry(physical: Addr, rights: 'code' | 'data'): bigint | undefined;
  /** The same for 4 KiB, in a table that {@link tableEntry} leads to. */
  pageEntry(physical: Addr, rights: 'code' | 'data'): bigint | undefined;
  /** An entry of a {@link LargePageTable} that leads to a table of 512 entries of 4 KiB, for the kernel's own use. */
  tableEntry(physical: Addr): bigint;
}

/** How page tables are read: tables of 512 entries of 8 bytes, as `page-walk.ts` walks them. */
export interface AddressSpaces {
  /** The registers that {@link of} wants, by their target-description names. */
  readonly registers: readonly string[];
  /**
   * The address space that registers describe, read from physical memory when it is asked. What cannot be told is a sentence: a register is not
   * known, or a paging mode is not supported.
   */
  of(registers: RegisterReader, physical: MemoryReader): AddressSpace | { readonly refused: string };
  /** Whether code can turn paging on; `always`: no kernel of this architecture runs without. */
  readonly turnedOnBy: 'always' | ((code: Uint8Array) => boolean);
  /** Bits of an entry that the processor may set: accessed and dirty. */
  readonly hardwareBits: bigint;
}
