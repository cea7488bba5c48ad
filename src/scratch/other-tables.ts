// Page tables that other harts than the stopped one have, or may begin with.
import type { AddressSpace, Architecture } from '../arch/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import { registersOf, type Session } from '../rsp/index.js';
import { currentAddressSpace, type GuestRam } from '../target/index.js';
import { accessTo } from './region-access.js';
import { PAGE, type Scratch } from './scratch.js';

const PT_LOAD = 1;
const PF_W = 2;

interface OtherTables {
  readonly session: Session;
  readonly arch: Architecture;
  readonly elf: ElfFile;
  readonly ram?: GuestRam | undefined;
  readonly logger: Logger;
}

const notPaging =
  'a hart that starts later runs without paging, and does not see them where they are mapped: give the guest less RAM, or one hart (-smp 1)';

/**
 * Maps the memory where other harts run now, and where one that has not begun may begin. A change of the table is
 * followed from then on. Returns why it cannot be mapped for a hart.
 */
export async function enterOtherTables(
  { follow, code }: Pick<Scratch, 'follow' | 'code'>,
  target: OtherTables,
): Promise<Refusal | undefined> {
  const { session, arch } = target;
  if (!follow) return undefined;
  let isLate = false;
  for (const { id } of await session.harts()) {
    const space = await currentAddressSpace(session, arch, id);
    // Firmware, or a hart that waits to be started.
    const isOff = isRefusal(space) || space.pages === undefined;
    isLate ||= isOff;
    const found = isOff ? undefined : await follow(space);
    if (found && isRefusal(found)) return found;
  }
  // Elsewhere its code says what it runs so early (`CodeEntries.unmapped`).
  const isThere = arch.addressSpaces?.alwaysPages || code.address === code.physical || !isLinkedAsLoaded(target.elf);
  if (isLate && !isThere) return { refused: notPaging };
  for await (const [root, space] of isLate ? tablesIn(target) : []) {
    const found = await follow(space);
    if (!isRefusal(found)) continue;
    target.logger.warn(
      { root: hex(root), why: found.refused },
      'trampolines cannot be mapped in a page table of the program: a hart that starts later with it must not run what is probed (--engine stop is safe)',
    );
  }
  return undefined;
}

function isLinkedAsLoaded({ segments }: ElfFile): boolean {
  return segments.every(({ type, address, physical }) => type !== PT_LOAD || address === physical);
}

/** Pages of the program's data that may be root tables, each with the address space that it would be the root of. */
async function* tablesIn({ session, arch, elf, ram }: OtherTables): AsyncGenerator<readonly [Addr, AddressSpace]> {
  const { addressSpaces } = arch;
  const memory = await session.physicalMemory();
  if (!addressSpaces?.withRoot || memory === undefined) return;
  const registers = await registersOf(session, undefined, addressSpaces.registers);
  for (const { type, flags, address, physical, memorySize } of elf.segments) {
    if (type !== PT_LOAD || (flags & PF_W) === 0) continue;
    const { read } = await accessTo(session, { address, physical, size: memorySize }, { ram, isData: false });
    const first = Number(-physical & BigInt(PAGE - 1));
    for (let offset = first; offset + PAGE <= memorySize; offset += PAGE) {
      if (!(await read(offset, PAGE))?.some((byte) => byte !== 0)) continue;
      const root = addOffset(physical, offset);
      const space = addressSpaces.of(addressSpaces.withRoot(registers, root), memory);
      if (!isRefusal(space)) yield [root, space];
    }
  }
}
