import type { Addr } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import type { Session } from '../../rsp/index.js';
import type { MemoryPiece, QemuOption } from '../../target/index.js';
import type { FindTree } from '../hide-in-device-tree.js';

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

/** A way to have RAM that the guest does not know of. */
export interface Hiding {
  readonly hide: Hide;
  /**
   * Options of QEMU that make a memory backend a module of its own, beside the machine's RAM of so many bytes.
   * Undefined: the RAM itself is made larger.
   */
  readonly asModule?: (backend: string, visible: number, hidden: number) => readonly string[];
}

/** The largest piece of a machine's RAM. */
export function largestRam(tree: readonly MemoryPiece[]): MemoryPiece | undefined {
  const size = ({ start, end }: MemoryPiece): number => Number(end - start);
  return tree.filter(({ kind }) => kind === 'ram').toSorted((a, b) => size(b) - size(a))[0];
}

/** A kind of QEMU's machines: how its guest learns about RAM. Each has a file, which the list of index.ts names. */
export interface Machine {
  /** By which architectures name it: `qemuMachines`. */
  readonly name: string;
  /** Its name for `-M`, for the user. */
  readonly types: readonly string[];
  /** Whether `-M` means it; undefined: the machine that the program takes by default. */
  isType(type: string | undefined): boolean;
  /**
   * How RAM is hidden from a guest that is started with these options, or why it cannot be hidden. `hidden`: bytes that
   * can be added to the `visible` ones; 0 for a machine that has been started.
   */
  hiding(
    options: readonly QemuOption[],
    type: string | undefined,
    visible: number,
    hidden: number,
  ): Promise<Hiding | Refusal>;
  /** The kernel's command line, if these options start a kernel that unpacks itself with code of no ELF. */
  unpackedStart?(options: readonly QemuOption[]): Promise<string | undefined>;
  /** Whether a running machine with this memory is of this kind, and has a device tree. */
  hasDeviceTree?(memory: readonly MemoryPiece[]): boolean;
  /** How that is found. */
  readonly deviceTree?: FindTree;
}
