import type { Architecture } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { Refusal } from '../base/errors.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import type { PagingFacts, RamPiece } from './ram-piece.js';
import type { ReservedMemory } from './reserved-memory.js';
import type { MapRefusal, Scratch } from './scratch.js';

/** One origin of memory for trampolines. `sources.ts` lists them. */
export interface ScratchSource {
  /** For the log: `hidden RAM`. */
  readonly name: string;
  /**
   * Before anything is written to the target: how such memory is found at a stop in the program. Or why there is none
   * here, if that is worth saying. What finds it may throw `SCRATCH_UNUSABLE` for memory that the user named.
   */
  there(request: ScratchRequest): ((request: SourceRequest) => Promise<SourceResult>) | Refusal | undefined;
}

/** Memory; or a refusal, which ends the search; or nothing, so that the next source is asked. */
export type SourceResult = Scratch | Refusal | MapRefusal | None;

/** This source has no memory here. `none`: the reason, which the user is told if every source is without. */
interface None {
  readonly none: string | undefined;
}

/** RAM that a machine's guest does not know of. */
export interface HiddenSource {
  /** It lies in a file of ours, which is read past the wire. */
  readonly isShared: boolean;
  /** Makes it usable for the kernel; at a later stop, if it is too early. */
  map(arch: Architecture, facts: PagingFacts, ram?: GuestRam): Promise<Scratch | MapRefusal>;
  /** The machine was reset. */
  hideAgain(): Promise<Refusal | undefined>;
}

export interface ScratchSources {
  /** Or why there is none for us. */
  readonly hidden?: HiddenSource | Refusal;
  /** What the user named. */
  readonly given?: ReservedMemory;
  /** The user says that the kernel leaves the end of RAM alone. */
  readonly top?: boolean;
}

export interface ScratchRequest extends ScratchSources {
  readonly session: Session;
  readonly arch: Architecture;
  readonly elf: ElfFile;
  /** An address of the program's code that trampolines must be near. */
  readonly text: Addr;
  /** The machine's RAM, if it can be read past the wire. */
  readonly ram?: GuestRam | undefined;
  /** Bytes of code that there may be, if the memory can be divided freely. */
  readonly codeSize?: number | undefined;
  /** Bytes wanted of a process of Linux, if the target is one. */
  readonly process?: { readonly codeSize: number; readonly dataSize: number } | undefined;
  /** What is found out once, however often memory is asked for. */
  readonly known?: Known;
  readonly logger?: Logger;
}

/** What every source is asked with. */
export interface SourceRequest extends ScratchRequest {
  readonly known: Known;
  /** Whether the program turns paging on at some time (see `turnsPagingOn`). */
  readonly pages: boolean;
  /** Part of the program never pages (see `hasOwnFirmware`). */
  readonly ownFirmware: boolean;
}

export interface Known {
  top?: RamPiece | Refusal;
  ownFirmware?: boolean;
}

/** For memory that only the user vouches for: why it cannot be used. */
export function unusable(why: string): RsptraceError {
  return new RsptraceError('SCRATCH_UNUSABLE', why, { hint: '--engine stop needs no memory in the target' });
}
