import type { Addr } from '../../base/addr.js';
import type { Refusal } from '../../base/refusal.js';
import type { SystemCalls } from './system-calls.js';

/** A piece of the target's memory. */
export interface Region {
  /** As the target runs it: a virtual address where it pages. */
  readonly address: Addr;
  readonly size: number;
  /** Where it lies in physical memory, where that is known. */
  readonly physical?: Addr;
}

/** Memory that the target and this process share: reads and writes cost no packet and need no stop. Data only: QEMU does not see that code changed. */
export interface SharedMemory {
  /** Fills `into` from `offset` on. */
  read(offset: number, into: Uint8Array): void;
  write(offset: number, bytes: Uint8Array): void;
  /** Harmless when called again; afterwards nothing may be read or written. */
  close(): void;
}

/** Memory that the stub reads faster than by its address, at a stop. */
export interface BulkReads {
  /** Bytes from `offset` on; undefined where they cannot be read this way. */
  read(offset: number, length: number): Promise<Uint8Array | undefined>;
  /** Harmless when called again, and while the target runs. */
  close(): Promise<void>;
}

/** Memory of the target that nobody else owns, found once while the target is stopped. */
export interface Scratch {
  /** Where it came from, for people. */
  readonly source: string;
  /** It is surely nobody else's; else only the user's word says so, or the machine's maps. */
  readonly owned: boolean;
  /** Executable for the target, and where it pages not writable by it; the client writes it through the stub. */
  readonly code: Region;
  /** Writable, and where the target pages not executable. No page of it is a page of `code`. */
  readonly data: Region;
  /** Offsets are from `data.address`. Undefined: only through the stub, at a stop. */
  readonly shared: SharedMemory | undefined;
  /** The data, where the stub has another way to it; offsets as in `shared`. */
  readonly bulk?: BulkReads;
  /** Where it is memory of a process: has that make system calls. */
  readonly calls?: SystemCalls;
  /** A page of a process that its children do not share with it, writable. */
  readonly own?: Region;
  /** Checks that nobody wrote to the guard pages around it; a sentence when somebody did. */
  verifyGuards(): Promise<string | undefined>;
  /** Takes back the data alone, which no code that stays uses any more. */
  releaseData?(): Promise<void>;
  /** Takes back what was mapped or changed, once nothing of ours can run there any more. The target is stopped. Harmless when called again. */
  release(): Promise<void>;
}

/** Lets go of what reads it, whatever becomes of the memory. Harmless when called again. */
export async function closeScratch(scratch: Scratch | undefined): Promise<void> {
  scratch?.shared?.close();
  await scratch?.bulk?.close();
}

/** `later`: it may work at a later stop, when the kernel has turned its paging on. */
export type MapRefusal = Refusal & { readonly later: boolean };

export const PAGE = 0x1000;
export const LARGE_PAGE = 0x20_0000;

export function alignDown(value: number, to: number): number {
  return value - (value % to);
}

export function alignUp(value: number, to: number): number {
  return alignDown(value + to - 1, to);
}
