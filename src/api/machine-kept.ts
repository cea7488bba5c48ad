// What is known of a machine that is copied again and again, so that it stands but for the copy.
import type { AddressSpace, Architecture } from '../arch/index.js';
import type { Region } from '../async/tasks/index.js';
import { addr } from '../base/addr.js';
import { isRefusal } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { madeOnce } from '../base/made-once.js';
import type { MemoryReader, RegisterReader } from '../base/memory-reader.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { GuestRam, ramPieces, seenMemory } from '../target/index.js';
import { Stacks } from '../target/unwind/index.js';
import type { Understood } from './views.js';

/** What is found out about a machine once. Its files are closed with it. */
export class MachineKept implements Disposable {
  /** Pages of the kernel that were found to have the program's code: see `hartStack`. */
  readonly ownPages = new Set<string>();
  #ram: Promise<Region[]> | undefined;
  #pastWire: Promise<GuestRam | undefined> | undefined;
  #found: GuestRam | undefined;
  readonly #stacks = new WeakMap<ElfFile, Stacks>();

  /** Where its RAM is, by QEMU's map of the machine. Pieces of any size, because a small board has no larger ones. */
  ram(session: Session): Promise<Region[]> {
    this.#ram ??= ramPieces(session, 0n).then((pieces) =>
      pieces.map(({ start, end }) => ({ start: addr(start), length: Number(end - start) })),
    );
    return this.#ram;
  }

  /** Its RAM, if QEMU runs here. */
  pastWire(session: Session, logger: Logger): Promise<GuestRam | undefined> {
    this.#pastWire ??= GuestRam.find(session, logger).then((found) => {
      if (found && !isRefusal(found)) this.#found = found;
      return this.#found;
    });
    return this.#pastWire;
  }

  stacks({ elf, debug }: Pick<Understood, 'elf' | 'debug'>, arch: Architecture): Stacks {
    return madeOnce(this.#stacks, elf, () => new Stacks(elf, arch, debug, []));
  }

  [Symbol.dispose](): void {
    this.#found?.[Symbol.dispose]();
  }
}

/** The memory that a hart with these registers sees, past the wire where it is RAM. */
export function asHartSees(
  ram: GuestRam,
  { addressSpaces }: Architecture,
  registers: RegisterReader,
  beyond: MemoryReader,
): MemoryReader {
  const space = addressSpaces?.of(registers, ramReader(ram));
  return space === undefined || 'refused' in space ? beyond : readerPastWire(ram, space, beyond);
}

/** Physical memory; `beyond` reads what is no RAM. */
export function ramReader(ram: GuestRam, beyond?: MemoryReader): MemoryReader {
  return {
    read: async (address, length) => {
      const bytes = new Uint8Array(length);
      return ram.read(address, bytes) ? bytes : await beyond?.read(address, length);
    },
  };
}

/** The memory of an address space; `beyond` reads what is no RAM. */
export function readerPastWire(ram: GuestRam, space: AddressSpace, beyond: MemoryReader): MemoryReader {
  if (space.scheme === 'off') return ramReader(ram, beyond);
  const inRam = seenMemory(space, ramReader(ram));
  return {
    read: async (address, length) => (await inRam.read(address, length)) ?? (await beyond.read(address, length)),
  };
}
