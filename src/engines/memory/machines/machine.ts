import type { Addr } from '../../../base/addr.js';
import type { Refusal } from '../../../base/refusal.js';
import type { MemoryPiece, QemuOption } from '../../../facts/index.js';
import type { Session } from '../../../rsp/index.js';

/** RAM that was taken out of what the guest reads. */
export interface HiddenRam {
  /** Physical. */
  readonly start: Addr;
  readonly size: number;
  /** What is at offset 0 of the file that is the machine's RAM. */
  readonly fileBase: Addr;
}

/**
 * Takes the topmost `hidden` bytes of RAM out of what the guest will read; `visible` bytes stay. The machine stands
 * at its reset vector. It is called again after each reset, and remembers what the first call found.
 */
export type Hide = (session: Session, visible: number, hidden: number) => Promise<HiddenRam | Refusal>;

/** A kind of QEMU's machines: how its guest is told of RAM. A file each, in the list of index.ts. */
export interface Machine {
  /** The program is `qemu-system-` and this. */
  readonly emulates: string;
  /** What `-M` calls it, for people. */
  readonly types: readonly string[];
  /** Whether `-M` means it; undefined: the machine that the program takes by itself. */
  isType(type: string | undefined): boolean;
  /** How RAM is hidden from a guest that is started with these options, or why it cannot be. */
  hiding(
    options: readonly QemuOption[],
    type: string | undefined,
    visible: number,
    hidden: number,
  ): Promise<Hide | Refusal>;
  /** The kernel's command line, where these options start a kernel that unpacks itself with code of no ELF. */
  unpackedStart?(options: readonly QemuOption[]): Promise<string | undefined>;
  /** Whether a running machine with this memory is one, and has a device tree to which its mask ROM points. */
  hasDeviceTree?(memory: readonly MemoryPiece[]): boolean;
}
