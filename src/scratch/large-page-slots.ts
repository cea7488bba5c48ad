import type { AddressSpace, Architecture } from '../arch/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import type { Refusal } from '../base/refusal.js';
import type { Session } from '../rsp/index.js';
import { LARGE_PAGE } from './scratch.js';

/** Memory that was mapped near the kernel's text. */
interface MappedSlots {
  readonly address: Addr;
  /** Removes the entries again; false if something else has changed them, and they were left. */
  unmap(): Promise<boolean>;
}

const ENTRY = 8;
const notApart = 'data cannot be mapped without being executable: EFER.NXE is clear';

/** Pages of 2 MiB, one behind the other. */
export interface LargePages {
  readonly physical: Addr;
  readonly count: number;
  /** So many of them, the first ones, are for code, the others for data. */
  readonly code: number;
}

/**
 * Maps physical memory into free entries of the table that maps the kernel's text. Every address space with the
 * kernel shares that table, so all of them see the memory, and the text is within 1 GiB. The entries were never valid,
 * so QEMU has no translation to flush; hardware may have to.
 */
export async function mapBesideText(
  session: Session,
  arch: Architecture,
  space: AddressSpace,
  text: Addr,
  { physical, count, code }: LargePages,
): Promise<MappedSlots | Refusal> {
  const entries: bigint[] = [];
  for (let slot = 0; slot < count; slot++) {
    const entry = space.largePageEntry(addOffset(physical, slot * LARGE_PAGE), slot < code ? 'code' : 'data');
    if (entry === undefined) return { refused: notApart };
    entries.push(entry);
  }
  const memory = await session.physicalMemory();
  if (memory === undefined || !(await session.stub()).isQemu) {
    return { refused: 'page tables are changed only under QEMU, which forgets no translation that was never there' };
  }
  const table = await space.largePageTable(text);
  if (table === undefined) return { refused: `no table of 2 MiB pages maps the text at ${hex(text)}` };
  const textIndex = Number((text - table.virtual) / BigInt(LARGE_PAGE));
  const first = freeRun(table.entries, count, textIndex);
  if (first === undefined) return { refused: `the table that maps ${hex(text)} has no ${count} free entries in a row` };
  const bytes = new Uint8Array(count * ENTRY);
  const view = new DataView(bytes.buffer);
  for (const [slot, entry] of entries.entries()) view.setBigUint64(slot * ENTRY, entry, true);
  const at = addOffset(table.physical, first * ENTRY);
  await memory.write(at, bytes);
  const back = await memory.read(at, bytes.length);
  if (back === undefined || Buffer.compare(back, bytes) !== 0) {
    return { refused: `the page table at ${hex(table.physical)} does not keep what is written` };
  }
  let mapped = true;
  return {
    address: addOffset(table.virtual, first * LARGE_PAGE),
    unmap: async () => {
      if (!mapped) return true;
      const now = await memory.read(at, bytes.length);
      if (now === undefined || !sameEntries(now, bytes, arch.addressSpaces?.hardwareBits ?? 0n)) return false;
      const written = await memory.write(at, new Uint8Array(bytes.length));
      mapped = false;
      return written;
    },
  };
}

/**
 * Where to map `count` entries: in the middle of the longest run of empty ones behind the text, else before it. So
 * whatever grows on either side takes long to come near. Empty means all zero, because other entries may be ones that
 * the kernel has set aside.
 */
function freeRun(entries: BigUint64Array, count: number, text: number): number | undefined {
  const longest = (from: number, to: number): number | undefined => {
    let best: { start: number; length: number } | undefined;
    for (let start = from; start < to; ) {
      let end = start;
      while (end < to && entries[end] === 0n) end++;
      if (end - start >= count && end - start > (best?.length ?? 0)) best = { start, length: end - start };
      start = end + 1;
    }
    return best === undefined ? undefined : best.start + ((best.length - count) >> 1);
  };
  return longest(text + 1, entries.length) ?? longest(0, text);
}

function sameEntries(a: Uint8Array, b: Uint8Array, ignored: bigint): boolean {
  const left = new DataView(a.buffer, a.byteOffset, a.byteLength);
  const right = new DataView(b.buffer, b.byteOffset, b.byteLength);
  for (let at = 0; at < b.length; at += ENTRY) {
    if (((left.getBigUint64(at, true) ^ right.getBigUint64(at, true)) & ~ignored) !== 0n) return false;
  }
  return true;
}
