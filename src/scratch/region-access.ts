import type { AddressSpace } from '../arch/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import type { Refusal } from '../base/errors.js';
import type { Session, TargetMemory } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import { PAGE, type Region, type SharedMemory } from './scratch.js';

/**
 * A region as the client reads and writes it at a stop: by physical address if that is known, whatever the stopped
 * hart can see.
 */
export interface RegionAccess {
  read(offset: number, length: number): Promise<Uint8Array | undefined>;
  /** False if the stub refused it. A write that was accepted need not have been kept. */
  write(offset: number, bytes: Uint8Array): Promise<boolean>;
}

/** Ways to a machine's memory past the wire. */
interface PastWire {
  /** Undefined: by packets only. */
  readonly ram: GuestRam | undefined;
  /** The region, where this process can read it itself. */
  readonly shared?: SharedMemory | undefined;
  /** Nothing there is ever executed. QEMU does not notice that code is written past the wire. */
  readonly isData: boolean;
}

export async function accessTo(session: Session, region: Region, past?: PastWire): Promise<RegionAccess> {
  const packets = await packetsTo(session, region);
  const { physical } = region;
  const ram = physical !== undefined && past?.ram?.holds(physical, region.size) ? past.ram : undefined;
  const { shared } = past ?? {};
  if (shared === undefined && ram === undefined) return packets;
  const at = (offset: number): Addr => addOffset(physical ?? region.address, offset);
  return {
    read: async (offset, length) => {
      const bytes = new Uint8Array(length);
      shared?.read(offset, bytes);
      return shared || ram?.read(at(offset), bytes) ? bytes : packets.read(offset, length);
    },
    write: async (offset, bytes) => (past?.isData && ram?.write(at(offset), bytes)) || packets.write(offset, bytes),
  };
}

/** Bytes that are compared at once before they are put back. */
const restoredAtOnce = 16 * PAGE;

/**
 * Reads the contents of regions. Returns what puts back what has changed of them, once. Undefined if one cannot be
 * read.
 * `isData`: see {@link PastWire}.
 */
export async function keepContents(
  session: Session,
  regions: readonly { readonly region: Region; readonly isData: boolean }[],
  ram: GuestRam | undefined,
): Promise<(() => Promise<void>) | undefined> {
  const kept: { readonly access: RegionAccess; readonly before: Uint8Array }[] = [];
  for (const { region, isData } of regions) {
    const access = await accessTo(session, region, { ram, isData });
    const before = await access.read(0, region.size);
    if (before === undefined) return undefined;
    kept.push({ access, before });
  }
  return async () => {
    for (const { access, before } of kept.splice(0)) {
      for (let offset = 0; offset < before.length; offset += restoredAtOnce) {
        const bytes = before.subarray(offset, offset + restoredAtOnce);
        const now = await access.read(offset, bytes.length);
        if (now === undefined || Buffer.compare(now, bytes) !== 0) await access.write(offset, bytes);
      }
    }
  };
}

/** Bytes of RAM that are read at once. */
const searchedAtOnce = 64 * 2 ** 10;

/** The offset of a byte that is not zero, or of a piece that cannot be read. `sample`: bytes read of a piece. */
export async function firstUsed(
  { read }: Pick<RegionAccess, 'read'>,
  size: number,
  sample = searchedAtOnce,
): Promise<number | undefined> {
  for (let offset = 0; offset + sample <= size; offset += searchedAtOnce) {
    const bytes = await read(offset, sample);
    const at = bytes === undefined ? 0 : bytes.findIndex((byte) => byte !== 0);
    if (at >= 0) return offset + at;
  }
  return undefined;
}

async function packetsTo(session: Session, region: Region): Promise<RegionAccess> {
  const physical = region.physical === undefined ? undefined : await session.physicalMemory();
  const base = physical === undefined || region.physical === undefined ? region.address : region.physical;
  const memory: TargetMemory = physical ?? session.memory();
  return {
    read: (offset, length) => memory.read(addOffset(base, offset), length),
    write: (offset, bytes) => memory.write(addOffset(base, offset), bytes),
  };
}

/**
 * Checks that every page of a region lies at the right physical address and has the necessary rights in the kernel.
 * Returns why not, or undefined.
 */
export async function checkMapped(
  space: AddressSpace,
  region: Required<Region>,
  rights: 'code' | 'data',
): Promise<string | undefined> {
  for (let offset = 0; offset < region.size; ) {
    const at = addOffset(region.address, offset);
    const mapping = await space.translate(at);
    if (mapping === undefined) return `0x${at.toString(16)} is not mapped`;
    const inside = at - mapping.virtual;
    if (mapping.physical + inside !== region.physical + BigInt(offset)) return `0x${at.toString(16)} is other memory`;
    const allowed = !mapping.user && (rights === 'code' ? mapping.executable : mapping.writable);
    if (!allowed) return `0x${at.toString(16)} is not ${rights === 'code' ? 'executable' : 'writable'} for the kernel`;
    offset += mapping.size - Number(inside);
  }
  return undefined;
}

/** The physical address of a virtual one; undefined if it is not mapped. */
export async function physicalOf(space: AddressSpace, address: Addr): Promise<Addr | undefined> {
  const mapping = await space.translate(address);
  return mapping === undefined ? undefined : addOffset(mapping.physical, address - mapping.virtual);
}

/** Bytes that are never written by chance, different for every place. */
export function pattern(place: bigint, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = Number((place ^ (place >> 32n)) & 0xffff_ffffn) ^ 0x9e37_79b9;
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

/** A page that nobody may write to. */
interface GuardPage {
  /** For the user: what a write to it means. */
  readonly where: string;
  readonly address: Addr;
  readonly access: RegionAccess;
}

/** Fills pages with a pattern. Returns the check that it is still there: a sentence if it is not. */
export async function plantGuards(pages: readonly GuardPage[]): Promise<(() => Promise<string | undefined>) | Refusal> {
  const check = async (wrong: (page: GuardPage) => string): Promise<string | undefined> => {
    for (const page of pages) {
      const now = await page.access.read(0, PAGE);
      if (now === undefined) return `the guard page ${page.where} cannot be read`;
      if (Buffer.compare(now, pattern(page.address, PAGE)) !== 0) return wrong(page);
    }
    return undefined;
  };
  for (const { address, access } of pages) await access.write(0, pattern(address, PAGE));
  const lost = await check(({ address }) => `memory at ${hex(address)} does not keep what is written`);
  if (lost !== undefined) return { refused: lost };
  return () => check(({ where, address }) => `somebody wrote to the guard page ${where}, at ${hex(address)}`);
}
