import type { Architecture, Mapping } from '../arch/index.js';
import { merged, type Region } from '../async/tasks/index.js';
import { type Addr, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { isRefusal } from '../base/refusal.js';
import type { Session } from '../rsp/index.js';
import { GuestRam, readMemoryTree } from '../target/index.js';
import type { HartStack } from '../target/stacks/index.js';

/** One region at most: lengths are numbers that one read may have. */
const LARGEST = 2n ** 40n;

/**
 * Where a machine's RAM is, at the addresses that its kernel uses. Without paging that is all of it, else what the page
 * table in force maps for the kernel to write. Empty if nobody says where RAM is, because reading a device changes it.
 */
export async function machineRam(
  session: Session,
  arch: Architecture,
  harts: readonly HartStack[],
  logger: Logger,
): Promise<readonly Region[]> {
  const ram = await physicalRam(session);
  const physical = ram.length === 0 ? undefined : await session.physicalMemory();
  if (physical === undefined) return [];
  const found: Region[] = [];
  const isRam = ({ physical: at, size, writable, user }: Mapping): boolean =>
    writable && !user && ram.some(({ start, length }) => at < start + BigInt(length) && at + BigInt(size) > start);
  // A loader may have mapped all physical addresses, with a thousand tables: they are read past the wire, if QEMU runs here.
  const pastWire = await GuestRam.find(session, logger);
  using shared = pastWire && !isRefusal(pastWire) ? pastWire : undefined;
  const tables: MemoryReader = {
    read: async (address, length) => {
      const bytes = new Uint8Array(length);
      return shared?.read(address, bytes) ? bytes : await physical.read(address, length);
    },
  };
  for (const { registers } of harts) {
    const space = arch.addressSpaces?.of(registers, tables);
    if (space === undefined || 'refused' in space) continue;
    if (space.scheme === 'off') {
      found.push(...ram);
      continue;
    }
    try {
      for await (const { virtual, physical: at, size } of space.mappings({ wants: isRam }))
        found.push(...overlaps(virtual, at, size, ram));
    } catch (error) {
      if (!(error instanceof RsptraceError) || error.code !== 'PAGE_TABLES_TOO_LARGE') throw error;
    }
  }
  return merged(found);
}

/** QEMU's map of the machine. */
async function physicalRam(session: Session): Promise<Region[]> {
  if ((await session.stub()).name !== 'qemu-system') return [];
  return readMemoryTree((await session.monitor('info mtree -f')) ?? '')
    .filter(({ kind, start, end }) => kind === 'ram' && end - start < LARGEST)
    .map(({ start, end }) => ({ start: addr(start), length: Number(end - start) }));
}

/** The parts of a mapping that are RAM. */
function overlaps(virtual: Addr, physical: Addr, size: number, ram: readonly Region[]): Region[] {
  return ram.flatMap(({ start, length }) => {
    const from = start > physical ? start : physical;
    const end = start + BigInt(length);
    const to = physical + BigInt(size) < end ? physical + BigInt(size) : end;
    return to > from ? [{ start: addr(virtual + (from - physical)), length: Number(to - from) }] : [];
  });
}
