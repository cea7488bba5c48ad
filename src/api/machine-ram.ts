import type { Architecture } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { readMemoryTree } from '../facts/index.js';
import type { Session } from '../rsp/index.js';
import type { HartStack } from '../stacks/index.js';
import { merged, type Region } from '../tasks/index.js';

/** One region at most: lengths are numbers that one read may have. */
const LARGEST = 2n ** 40n;

/**
 * Where a machine's RAM is, at the addresses that its kernel uses. Without paging that is all of it, else what the page
 * table in force maps for the kernel to write. Empty if nobody tells where RAM is, because reading a device changes it.
 */
export async function machineRam(
  session: Session,
  arch: Architecture,
  harts: readonly HartStack[],
): Promise<readonly Region[]> {
  const ram = await physicalRam(session);
  const physical = ram.length === 0 ? undefined : await session.physicalMemory();
  if (physical === undefined) return [];
  const found: Region[] = [];
  for (const { registers } of harts) {
    const space = arch.addressSpaces?.of(registers, physical);
    if (space === undefined || 'refused' in space) continue;
    if (space.scheme === 'off') {
      found.push(...ram);
      continue;
    }
    try {
      for await (const { virtual, physical: at, size, writable, user } of space.mappings())
        if (writable && !user) found.push(...overlaps(virtual, at, size, ram));
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
