import type { Addr } from '../../../base/addr.js';
import type { Refusal } from '../../../base/refusal.js';
import type { MemoryPiece, QemuOption } from '../../../facts/index.js';
import type { Session } from '../../../rsp/index.js';

/** RAM that was removed from what the guest reads. */
export interface HiddenRam {
  /** Physical. */
  readonly start: Addr;
  readonly size: number;
  /** What lies at offset 0 of the file that is the machine's RAM. */
  readonly fileBase: Addr;
}

/**
 * Removes the topmost `hidden` bytes of RAM from what the guest will read; `visible` bytes stay. The machine is at
 * its reset vector. It is called again after each reset, and remembers what the first call found.
 */
export type Hide = (session: Session, visible: number, hidden: number) => Promise<HiddenRam | Refusal>;

/** A kind of QEMU's machines: how its guest learns about RAM. Each has a file, which the list of index.ts names. */
export interface Machine {
  /** By which architectures name it: `qemuMachines`. */
  readonly name: string;
  /** Its name for `-M`, for the user. */
  readonly types: readonly string[];
  /** Whether `-M` means it; undefined: the machine that the program takes by default. */
  isType(type: string | undefined): boolean;
  /** How RAM is hidden from a guest that is started with these options, or why it cannot be hidden. */
  hiding(
    options: readonly QemuOption[],
    type: string | undefined,
    visible: number,
    hidden: number,
  ): Promise<Hide | Refusal>;
  /** The kernel's command line, if these options start a kernel that unpacks itself with code of no ELF. */
  unpackedStart?(options: readonly QemuOption[]): Promise<string | undefined>;
  /** Whether a running machine with this memory is of this kind, and has a device tree to which its mask ROM points. */
  hasDeviceTree?(memory: readonly MemoryPiece[]): boolean;
}
