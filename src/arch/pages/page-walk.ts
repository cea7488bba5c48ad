// What RISC-V's Sv39/48/57, x86's 4- and 5-level paging and AArch64's translation share. A table is a page of entries of
// 8 bytes. With pages of 4 KiB each level takes nine bits of the address, the offset takes twelve, and addresses are
// sign-extended; level 0 maps 4 KiB, level 1 2 MiB, level 2 1 GiB.
import { type Addr, addr } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import type { AddressSpace, LargePageTable, Mapping, Translation, WantedLeaves } from './address-space.js';

interface Rights {
  readonly readable: boolean;
  readonly writable: boolean;
  readonly executable: boolean;
  readonly user: boolean;
}

/** The content of an entry; undefined for one that maps nothing or is not allowed. */
export type Entry =
  | { readonly kind: 'table'; readonly physical: bigint; readonly rights: Rights }
  | { readonly kind: 'leaf'; readonly physical: bigint; readonly rights: Rights };

export interface PageFormat {
  readonly levels: 3 | 4 | 5;
  /** Physical address of the first table. */
  readonly root: bigint;
  /** Bits of an address within a page, 12 if nothing is said. */
  readonly pageBits?: number;
  /**
   * Tables of their own for addresses that begin with zeros, and for those that begin with ones. Without it one table
   * has both.
   */
  readonly halves?: { readonly lower: Tables | undefined; readonly upper: Tables | undefined };
  /** `virtual` is the address looked up, for formats whose leaf depends on it. */
  decode(entry: bigint, level: number, virtual: bigint): Entry | undefined;
}

export interface Tables {
  readonly levels: number;
  readonly root: bigint;
  /** So many bits of an address are translated. */
  readonly bits: number;
}

const usualPageBits = 12;
const TABLE = 4096;
const MOST_TABLES = 65_536;
const allRights: Rights = { readable: true, writable: true, executable: true, user: true };

interface Step {
  readonly level: number;
  readonly table: bigint;
  readonly entry: Entry;
  readonly rights: Rights;
}

class PageWalk {
  readonly #format: PageFormat;
  readonly #memory: MemoryReader;
  /** The last table that was read, by level, because neighbouring addresses use the same tables. */
  readonly #last: ({ readonly at: bigint; readonly entries: BigUint64Array } | undefined)[] = [];

  constructor(format: PageFormat, physical: MemoryReader) {
    this.#format = format;
    this.#memory = physical;
  }

  async translate(address: Addr): Promise<Mapping | undefined> {
    const step = (await this.#path(address, 0)).at(-1);
    if (step?.entry.kind !== 'leaf') return undefined;
    const size = sizeAt(step.level, this.#format.pageBits);
    return mapping(addr(address & -BigInt(size)), size, step.entry.physical, step.rights);
  }

  async largePageTable(address: Addr): Promise<LargePageTable | undefined> {
    const step = (await this.#path(address, 1)).find(({ level }) => level === 1);
    const entries = step === undefined ? undefined : await this.#tableAt(1, step.table);
    if (step === undefined || entries === undefined) return undefined;
    return { virtual: addr(address & -BigInt(sizeAt(2))), entries };
  }

  async *mappings({
    from = addr(0),
    to = addr(0),
    mostTables = MOST_TABLES,
    wants = () => true,
  }: WantedLeaves = {}): AsyncGenerator<Mapping> {
    const end = to === 0n ? 1n << 64n : to;
    let count = 0;
    const format = this.#format;
    const read = async (at: bigint): Promise<BigUint64Array> => {
      if (++count > mostTables) {
        throw new RsptraceError('PAGE_TABLES_TOO_LARGE', `The target has more than ${mostTables} page tables`);
      }
      return (await this.#table(at)) ?? new BigUint64Array(0);
    };
    const walk = async function* (table: bigint, level: number, base: bigint, above: Rights): AsyncGenerator<Mapping> {
      const entries = await read(table);
      const size = sizeAt(level, format.pageBits);
      const span = BigInt(size);
      for (let index = 0; index < entries.length; index++) {
        const raw = entries[index] as bigint;
        if (raw === 0n) continue;
        const low = base + BigInt(index) * span;
        const virtual = extended(format, low);
        // A first table may be shorter than a page.
        if (virtual === undefined) break;
        if (virtual + span <= from || virtual >= end) continue;
        const entry = format.decode(raw, level, virtual);
        if (entry === undefined) continue;
        const rights = both(above, entry.rights);
        const leaf = entry.kind === 'leaf' ? mapping(virtual, size, entry.physical, rights) : undefined;
        if (leaf && wants(leaf)) yield leaf;
        else if (!leaf) yield* walk(entry.physical, level - 1, low, rights);
      }
    };
    const { halves } = format;
    const all = halves ? [halves.lower, halves.upper] : [whole(format)];
    for (const [half, tables] of all.entries()) {
      const base = half === 0 ? 0n : (1n << 64n) - (1n << BigInt(tables?.bits ?? 0));
      if (tables) yield* walk(tables.root, tables.levels - 1, base, allRights);
    }
  }

  /**
   * The entries on the way to an address. They end at a leaf, at an entry that maps nothing (left out), or at `last`.
   */
  async #path(address: Addr, last: number): Promise<Step[]> {
    const steps: Step[] = [];
    const tables = tablesFor(this.#format, address);
    let table = tables?.root ?? 0n;
    let rights = allRights;
    for (let level = (tables?.levels ?? 0) - 1; level >= last; level--) {
      const index = indexAt(this.#format, tables as Tables, address, level);
      const entries = await this.#tableAt(level, table);
      if (entries === undefined) break;
      const raw = entries[index] as bigint;
      const entry = this.#format.decode(raw, level, address);
      if (entry === undefined) break;
      rights = both(rights, entry.rights);
      steps.push({ level, table, entry, rights });
      if (entry.kind === 'leaf') break;
      table = entry.physical;
    }
    return steps;
  }

  async #tableAt(level: number, at: bigint): Promise<BigUint64Array | undefined> {
    const last = this.#last[level];
    if (last?.at === at) return last.entries;
    const entries = await this.#table(at);
    if (entries !== undefined) this.#last[level] = { at, entries };
    return entries;
  }

  async #table(at: bigint): Promise<BigUint64Array | undefined> {
    const bytes = await this.#memory.read(addr(at), sizeAt(0, this.#format.pageBits));
    if (bytes === undefined) return undefined;
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    return BigUint64Array.from({ length: bytes.length / 8 }, (_, index) => view.getBigUint64(index * 8, true));
  }
}

function whole({ levels, root, pageBits = usualPageBits }: PageFormat): Tables {
  return { levels, root, bits: pageBits + (pageBits - 3) * levels };
}

/** The tables that have an address; undefined if none do. */
function tablesFor(format: PageFormat, address: bigint): Tables | undefined {
  const { halves } = format;
  const isUpper = address >> 63n === 1n;
  const tables = halves ? (isUpper ? halves.upper : halves.lower) : whole(format);
  if (!tables) return undefined;
  // Without halves the highest bit that is translated is extended.
  const above = address >> BigInt(halves ? tables.bits : tables.bits - 1);
  const ones = (1n << BigInt(64 - (halves ? tables.bits : tables.bits - 1))) - 1n;
  return above === (isUpper ? ones : 0n) ? tables : undefined;
}

/** The virtual address of an entry whose indices sum up to this; undefined if its tables do not translate it. */
function extended(format: PageFormat, low: bigint): Addr | undefined {
  const virtual = addr(format.halves ? low : BigInt.asIntN(whole(format).bits, low));
  return low < 1n << 64n && tablesFor(format, virtual) ? virtual : undefined;
}

function indexAt({ pageBits = usualPageBits }: PageFormat, { bits }: Tables, address: bigint, level: number): number {
  const each = BigInt(pageBits - 3);
  return Number((BigInt.asUintN(bits, address) >> (BigInt(pageBits) + each * BigInt(level))) & ((1n << each) - 1n));
}

/**
 * The leaf for an address, walked at once: `word` reads eight bytes of physical memory. Undefined if the address is
 * not mapped, or if a table cannot be read.
 */
export function walkNow(
  format: PageFormat,
  address: Addr,
  word: (physical: bigint) => bigint | undefined,
): { readonly physical: bigint; readonly size: number; readonly user: boolean } | undefined {
  const tables = tablesFor(format, address);
  let table = tables?.root ?? 0n;
  let user = true;
  for (let level = (tables?.levels ?? 0) - 1; level >= 0; level--) {
    const raw = word(table + 8n * BigInt(indexAt(format, tables as Tables, address, level)));
    const entry = raw === undefined ? undefined : format.decode(raw, level, address);
    if (entry === undefined) return undefined;
    user &&= entry.rights.user;
    if (entry.kind === 'leaf') return { physical: entry.physical, size: sizeAt(level, format.pageBits), user };
    table = entry.physical;
  }
  return undefined;
}

/** Bytes that an entry of a level maps. */
export function sizeAt(level: number, pageBits = usualPageBits): number {
  return 2 ** (pageBits + (pageBits - 3) * level);
}

/** How a hart sees memory with this translation. `entries`: how the architecture writes those of the kernel's own. */
export function spaceOf(
  scheme: string,
  { pages, user }: Translation,
  physical: MemoryReader,
  entries: Pick<AddressSpace, 'largePageEntry' | 'executableEntry' | 'tableEntry'>,
): AddressSpace {
  if (pages === undefined) {
    return {
      ...{ scheme: 'off', user, pages, ...entries },
      translate: async (address) => identity(address),
      mappings: everything,
      largePageTable: async () => undefined,
    };
  }
  const walk = new PageWalk(pages, physical);
  return {
    ...{ scheme, user, pages, ...entries },
    translate: (address) => walk.translate(address),
    mappings: (wanted) => walk.mappings(wanted),
    largePageTable: (address) => walk.largePageTable(address),
  };
}

/** One mapping for all of memory, for machines that do not page. */
async function* everything(): AsyncGenerator<Mapping> {
  yield identity(addr(0), 2 ** 64);
}

/** The page of an address that is itself physical. */
function identity(address: Addr, size = TABLE): Mapping {
  const start = size === TABLE ? addr(address & -BigInt(TABLE)) : address;
  return { virtual: start, physical: start, size, readable: true, writable: true, executable: true, user: false };
}

function mapping(virtual: Addr, size: number, physical: bigint, rights: Rights): Mapping {
  return { virtual, physical: addr(physical), size, ...rights };
}

function both(a: Rights, b: Rights): Rights {
  return {
    readable: a.readable && b.readable,
    writable: a.writable && b.writable,
    executable: a.executable && b.executable,
    user: a.user && b.user,
  };
}
