// Memory of ours in a kernel's page tables, also in those that the kernel makes later.
import type { AddressSpace, Architecture, LargePageTable } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import type { Session, TargetMemory } from '../rsp/index.js';
import { checkMapped } from './region-access.js';
import { LARGE_PAGE, PAGE, partOf, type Region } from './scratch.js';

const ENTRY = 8;
const GIB = 2n ** 30n;

interface OwnPagesOptions {
  readonly session: Session;
  readonly arch: Architecture;
  /** Where the target sees the memory; a multiple of 2 MiB. */
  readonly address: Addr;
  readonly physical: Addr;
  /** Pages of 2 MiB, one behind the other. */
  readonly count: number;
  /** So many of them, the first ones, are for code, the others for data. */
  readonly code: number;
  /** Memory for page tables of our own, by physical address. */
  readonly tables: Required<Region>;
}

/** The physical address of a page table. */
interface Table {
  readonly table: Addr;
}

/** An entry that we have written, and what was there. */
interface Written {
  readonly at: Addr;
  readonly entry: bigint;
  readonly before: bigint;
}

/** A piece of 2 MiB that the kernel maps itself. */
interface Mapped {
  readonly at: Addr;
  readonly physical: Addr;
  readonly rights: 'code' | 'data';
  /** The entry that maps it, and where that is. */
  readonly entry: bigint;
  readonly place: Addr;
}

/**
 * Maps memory of ours at one address in any page table of the kernel. Writes only entries that were empty, so QEMU has
 * no translation to forget. Where a table is missing on the way, one of our own is entered. In a table that the kernel
 * has just turned to, it may have mapped the memory itself: then our code is made executable.
 */
export class OwnPages {
  readonly #options: OwnPagesOptions;
  readonly #written: Written[] = [];
  #isKnown = false;
  #tablesUsed = 0;

  constructor(options: OwnPagesOptions) {
    this.#options = options;
  }

  /** The kernel has mapped the memory itself. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** True if this address space has the memory there, with the right permissions. */
  async isIn(space: AddressSpace): Promise<boolean> {
    const { address, physical, count, code } = this.#options;
    const split = code * LARGE_PAGE;
    const whole = { address, physical, size: count * LARGE_PAGE };
    const [first, rest] = [partOf(whole, 0, split), partOf(whole, split, whole.size - split)];
    return ((await checkMapped(space, first, 'code')) ?? (await checkMapped(space, rest, 'data'))) === undefined;
  }

  /**
   * Enters the memory into the tables of this address space, which does not have it yet. `isNew`: the target stands
   * right behind the instruction that has turned to it.
   */
  async enter(space: AddressSpace, isNew = false): Promise<Refusal | undefined> {
    const { session, address, count } = this.#options;
    const memory = await session.physicalMemory();
    if (memory === undefined || !(await session.stub()).isQemu) {
      return { refused: 'page tables are changed only under QEMU, which forgets no translation that was never there' };
    }
    let found: Table | Refusal = { refused: '' };
    for (let slot = 0; slot < count; slot++) {
      const at = addOffset(address, slot * LARGE_PAGE);
      // A table has the entries of a GiB.
      if (slot === 0 || at % GIB === 0n) found = await this.#tableFor(space, memory, at);
      if (isRefusal(found)) return found;
      const wrong = await this.#enterSlot(space, memory, found, slot, isNew);
      if (wrong) return wrong;
    }
    return undefined;
  }

  async #enterSlot(
    space: AddressSpace,
    memory: TargetMemory,
    { table }: Table,
    slot: number,
    isNew: boolean,
  ): Promise<Refusal | undefined> {
    const { address, code } = this.#options;
    const at = addOffset(address, slot * LARGE_PAGE);
    const physical = addOffset(this.#options.physical, slot * LARGE_PAGE);
    const rights = slot < code ? 'code' : 'data';
    const leaf = space.largePageEntry(physical, rights);
    if (leaf === undefined) return { refused: 'data cannot be mapped without being executable: EFER.NXE is clear' };
    const place = entryIn(table, at, 1);
    const before = await word(memory, place);
    if (before === leaf) return undefined;
    if (before === undefined) return { refused: `the page table at ${hex(table)} cannot be read` };
    if (before === 0n) return this.#write(memory, { at: place, entry: leaf, before });
    if (isNew) return this.#share(space, memory, { at, physical, rights, entry: before, place });
    return { refused: `the kernel has something else at ${hex(at)}` };
  }

  /** Makes code executable that the kernel maps itself, as RAM of its own. */
  async #share(space: AddressSpace, memory: TargetMemory, mapped: Mapped): Promise<Refusal | undefined> {
    const { at, physical, rights, entry, place } = mapped;
    const decoded = space.pages?.decode(entry, 1, at);
    const isTable = decoded?.kind === 'table';
    const count = isTable ? LARGE_PAGE / PAGE : 1;
    const start = isTable ? addr(decoded.physical) : place;
    const bytes = await memory.read(start, count * ENTRY);
    if (bytes === undefined) return { refused: `the page table at ${hex(start)} cannot be read` };
    for (let index = 0; index < count; index++) {
      const before = entryOf(bytes.subarray(index * ENTRY));
      const page = addOffset(at, index * PAGE);
      const leaf = isTable ? space.pages?.decode(before, 0, page) : decoded;
      const isOurs = leaf?.kind === 'leaf' && leaf.physical === addOffset(physical, index * PAGE);
      if (!isOurs || leaf.rights.user || !(rights === 'code' || leaf.rights.writable))
        return { refused: `the kernel has something else at ${hex(page)}` };
      if (rights === 'data' || leaf.rights.executable) continue;
      const wanted = { at: addOffset(start, index * ENTRY), entry: space.executableEntry(before), before };
      const wrong = await this.#write(memory, wanted);
      if (wrong) return wrong;
    }
    this.#isKnown = true;
    return undefined;
  }

  /** The table of 2 MiB entries that maps an address. */
  async #tableFor(space: AddressSpace, memory: TargetMemory, at: Addr): Promise<Table | Refusal> {
    const { pages } = space;
    if (pages === undefined) return { refused: 'the kernel has not turned its paging on' };
    if (pages.pageBits !== undefined && pages.pageBits !== 12)
      return { refused: "the kernel's pages are larger than 4 KiB" };
    const { halves } = pages;
    const half = halves ? (at >> 63n === 1n ? halves.upper : halves.lower) : pages;
    if (half === undefined) return { refused: `no page table of the kernel has ${hex(at)}` };
    let table = addr(half.root);
    for (let level = half.levels - 1; level > 1; level--) {
      const place = entryIn(table, at, level);
      const raw = await word(memory, place);
      if (raw === undefined) return { refused: `the page table at ${hex(table)} cannot be read` };
      if (raw === 0n) {
        const fresh = await this.#freshTable(memory);
        if (isRefusal(fresh)) return fresh;
        const wrong = await this.#write(memory, { at: place, entry: space.tableEntry(fresh.table), before: 0n });
        if (wrong) return wrong;
        table = fresh.table;
        continue;
      }
      const entry = pages.decode(raw, level, at);
      if (entry?.kind !== 'table') return { refused: `the kernel has something else at ${hex(at)}` };
      table = addr(entry.physical);
    }
    return { table };
  }

  async #freshTable(memory: TargetMemory): Promise<Table | Refusal> {
    const { tables } = this.#options;
    const offset = this.#tablesUsed * PAGE;
    if (offset + PAGE > tables.size) return { refused: 'the kernel has too many page tables to be followed' };
    this.#tablesUsed++;
    const table = addOffset(tables.physical, offset);
    return (await memory.write(table, new Uint8Array(PAGE)))
      ? { table }
      : { refused: `${hex(table)} cannot be written` };
  }

  async #write(memory: TargetMemory, written: Written): Promise<Refusal | undefined> {
    const { at, entry } = written;
    await memory.write(at, bytesOf(entry));
    if ((await word(memory, at)) !== entry)
      return { refused: `the page table at ${hex(at)} does not keep what is written` };
    this.#written.push(written);
    return undefined;
  }

  /** Puts the entries back, but for those that something else has changed. A second call does no harm. */
  async remove(): Promise<void> {
    const memory = await this.#options.session.physicalMemory();
    const ignored = this.#options.arch.addressSpaces?.hardwareBits ?? 0n;
    for (const { at, entry, before } of this.#written.splice(0)) {
      const now = await memory?.read(at, ENTRY);
      if (now === undefined || ((entryOf(now) ^ entry) & ~ignored) !== 0n) continue;
      await memory?.write(at, bytesOf(before));
    }
  }
}

/**
 * Where there is room for `count` entries in the table that maps the kernel's text. It is the middle of the longest
 * run of empty ones behind the text, else before it. So whatever grows on either side takes long to come near. Every
 * address space with the kernel shares that table. Empty means all zero, because other entries may be ones that the
 * kernel has set aside.
 */
export function freeNear(text: Addr, { virtual, entries }: LargePageTable, count: number): Addr | undefined {
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
  const index = Number((text - virtual) / BigInt(LARGE_PAGE));
  const first = longest(index + 1, entries.length) ?? longest(0, index);
  return first === undefined ? undefined : addOffset(virtual, first * LARGE_PAGE);
}

function entryIn(table: Addr, address: Addr, level: number): Addr {
  const index = Number((address >> BigInt(12 + 9 * level)) & 511n);
  return addOffset(table, index * ENTRY);
}

async function word(memory: TargetMemory, at: Addr): Promise<bigint | undefined> {
  const bytes = await memory.read(at, ENTRY);
  return bytes && entryOf(bytes);
}

function entryOf(bytes: Uint8Array): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
}

function bytesOf(entry: bigint): Uint8Array {
  const bytes = new Uint8Array(ENTRY);
  new DataView(bytes.buffer).setBigUint64(0, entry, true);
  return bytes;
}
