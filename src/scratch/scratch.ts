import type { AddressSpace } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import type { Refusal } from '../base/errors.js';
import type { SystemCalls } from './system-calls.js';

/** A piece of the target's memory. */
export interface Region {
  /** Its address for the target: a virtual one if the target pages. */
  readonly address: Addr;
  readonly size: number;
  /** Its physical address, if that is known. */
  readonly physical?: Addr;
}

/** A part of a region. */
export function partOf<T extends Region>(region: T, offset: number, size: number): T {
  const { physical } = region;
  const place = { address: addOffset(region.address, offset), size };
  return { ...region, ...place, ...(physical === undefined ? {} : { physical: addOffset(physical, offset) }) };
}

/**
 * Memory that the target and this process share: reads and writes cost no packet and need no stop. For data only,
 * because QEMU does not notice changed code.
 */
export interface SharedMemory {
  /** It ends with the target: then reads throw `SCRATCH_CLOSED`. */
  readonly endsWithTarget?: boolean;
  /** Fills `into` with the bytes from `offset` on. */
  read(offset: number, into: Uint8Array): void;
  write(offset: number, bytes: Uint8Array): void;
  /** A second call does no harm; afterwards nothing may be read or written. */
  close(): void;
}

/** Memory that the stub reads faster in another way than by its address, at a stop. */
export interface BulkReads {
  /** Bytes from `offset` on; undefined if they cannot be read this way. */
  read(offset: number, length: number): Promise<Uint8Array | undefined>;
  /** A second call does no harm, nor a call while the target runs. */
  close(): Promise<void>;
}

/** Memory of the target that nobody else owns, found once while the target is stopped. */
export interface Scratch {
  /** Its source, for the user. */
  readonly source: string;
  /** True if it certainly has no other user; otherwise only the user's word or the machine's maps say so. */
  readonly owned: boolean;
  /** The kernel was told that it is not there, but may know better: its guards are looked at while the target runs. */
  readonly isWatched?: boolean;
  /** Executable for the target; if the target pages, not writable by it. The client writes it through the stub. */
  readonly code: Region;
  /** Writable; if the target pages, not executable. It shares no page with `code`. */
  readonly data: Region;
  /** Offsets are from `data.address`. Undefined: only through the stub, at a stop. */
  readonly shared: SharedMemory | undefined;
  /** The data, if the stub has another way to it; offsets as in `shared`. */
  readonly bulk?: BulkReads;
  /** For memory of a process: makes that process run system calls. */
  readonly calls?: SystemCalls;
  /** Writable pages of a process that its children do not share with it. */
  readonly own?: Region;
  /** Checks that nothing has written to the guard pages around it; a sentence if something has. */
  verifyGuards(): Promise<string | undefined>;
  /**
   * The kernel has changed its page table, and this is how the stopped hart sees memory now. Maps the memory there too,
   * if the kernel is there. Missing where the kernel itself maps the memory.
   */
  follow?(space: AddressSpace): Promise<Followed | Refusal>;
  /** Frees the data alone, once no remaining code uses it. */
  releaseData?(): Promise<void>;
  /**
   * Frees what was mapped and restores what was changed, once no code of ours can run there any more. The target is
   * stopped. A second call does no harm.
   */
  release(): Promise<void>;
}

interface Followed {
  /** The memory was not there. */
  readonly entered: boolean;
  /** The kernel has mapped it as RAM of its own. */
  readonly isKnown?: boolean;
}

/** Closes what reads it, whatever happens to the memory. A second call does no harm. */
export async function closeScratch(scratch: Scratch | undefined): Promise<void> {
  scratch?.shared?.close();
  await scratch?.bulk?.close();
}

/** `later`: it may work at a later stop, when the kernel has turned its paging on. */
export type MapRefusal = Refusal & { readonly later: boolean };

export const PAGE = 0x1000;
export const LARGE_PAGE = 0x20_0000;

/** Bytes of RAM for records, if there is that much for both. */
const RECORDS = 8 * 2 ** 20;
/** Bytes of RAM that are kept from a guest at least, so that few trampolines need not be counted. */
const LEAST_HIDDEN = 16 * 2 ** 20;

/** Bytes of RAM to keep from a guest for so many bytes of trampolines. */
export function ramFor(codeSize: number): number {
  return Math.max(LEAST_HIDDEN, alignUp(codeSize, LARGE_PAGE) + LARGE_PAGE + RECORDS);
}

/** Bytes of so much RAM that trampolines may have: half of it, or more where records have enough. */
export function mostForCode(size: number): number {
  return Math.max(alignDown(Math.max(size / 2, size - RECORDS), LARGE_PAGE), LARGE_PAGE);
}

export function alignDown(value: number, to: number): number {
  return value - (value % to);
}

export function alignUp(value: number, to: number): number {
  return alignDown(value + to - 1, to);
}
