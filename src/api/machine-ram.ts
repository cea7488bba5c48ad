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
  using tables = new PageTables(session, physical, logger);
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

/** So many tables are read by packets. A loader may have mapped all physical addresses, with a thousand tables. */
const fewTables = 64;

/** Page tables: where there are many and QEMU runs here, they are read past the wire. */
class PageTables implements MemoryReader, Disposable {
  readonly #session: Session;
  readonly #packets: MemoryReader;
  readonly #logger: Logger;
  #count = 0;
  #ram: GuestRam | undefined;

  constructor(session: Session, packets: MemoryReader, logger: Logger) {
    this.#session = session;
    this.#packets = packets;
    this.#logger = logger;
  }

  async read(address: Addr, length: number): Promise<Uint8Array | undefined> {
    if (++this.#count === fewTables) {
      const found = await GuestRam.find(this.#session, this.#logger);
      this.#ram = found && !isRefusal(found) ? found : undefined;
    }
    const bytes = new Uint8Array(length);
    return this.#ram?.read(address, bytes) ? bytes : this.#packets.read(address, length);
  }

  [Symbol.dispose](): void {
    this.#ram?.[Symbol.dispose]();
  }
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
