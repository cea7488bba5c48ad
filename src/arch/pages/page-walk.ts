// What RISC-V's Sv39/48/57 and x86's 4- and 5-level paging share. Tables have 512 entries of 8 bytes. Each level
// takes nine bits of the address, the offset takes twelve, and addresses are sign-extended. Level 0 maps 4 KiB, level
// 1 2 MiB, level 2 1 GiB.
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
  /** `virtual` is the address looked up, for formats whose leaf depends on it. */
  decode(entry: bigint, level: number, virtual: bigint): Entry | undefined;
}

const ENTRIES = 512;
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
    if (!this.#canonical(address)) return undefined;
    const step = (await this.#path(address, 0)).at(-1);
    if (step?.entry.kind !== 'leaf') return undefined;
    return mapping(addr(address & -BigInt(sizeAt(step.level))), step.level, step.entry.physical, step.rights);
  }

  async largePageTable(address: Addr): Promise<LargePageTable | undefined> {
    if (!this.#canonical(address)) return undefined;
    const step = (await this.#path(address, 1)).find(({ level }) => level === 1);
    const entries = step === undefined ? undefined : await this.#tableAt(1, step.table);
    if (step === undefined || entries === undefined) return undefined;
    return { physical: addr(step.table), virtual: addr(address & -BigInt(sizeAt(2))), entries };
  }

  async *mappings({
    from = addr(0),
    to = addr(0),
    mostTables = MOST_TABLES,
    wants = () => true,
  }: WantedLeaves = {}): AsyncGenerator<Mapping> {
    const bits = BigInt(12 + 9 * this.#format.levels);
    const half = 1n << (bits - 1n);
    const end = to === 0n ? 1n << 64n : to;
    let tables = 0;
    const format = this.#format;
    const read = async (at: bigint): Promise<BigUint64Array> => {
      if (++tables > mostTables) {
        throw new RsptraceError('PAGE_TABLES_TOO_LARGE', `The target has more than ${mostTables} page tables`);
      }
      return (await this.#table(at)) ?? new BigUint64Array(0);
    };
    const walk = async function* (table: bigint, level: number, base: bigint, above: Rights): AsyncGenerator<Mapping> {
      const entries = await read(table);
      const span = 1n << BigInt(12 + 9 * level);
      for (let index = 0; index < entries.length; index++) {
        const raw = entries[index] as bigint;
        if (raw === 0n) continue;
        const low = base + BigInt(index) * span;
        // The upper half of the address space is at its other end.
        const virtual = low >= half ? addr(low - 2n * half) : addr(low);
        if (virtual + span <= from || virtual >= end) continue;
        const entry = format.decode(raw, level, virtual);
        if (entry === undefined) continue;
        const rights = both(above, entry.rights);
        const leaf = entry.kind === 'leaf' ? mapping(virtual, level, entry.physical, rights) : undefined;
        if (leaf && wants(leaf)) yield leaf;
        else if (!leaf) yield* walk(entry.physical, level - 1, low, rights);
      }
    };
    yield* walk(this.#format.root, this.#format.levels - 1, 0n, allRights);
  }

  /**
   * The entries on the way to an address. They end at a leaf, at an entry that maps nothing (left out), or at `last`.
   */
  async #path(address: Addr, last: number): Promise<Step[]> {
    const steps: Step[] = [];
    let table = this.#format.root;
    let rights = allRights;
    for (let level = this.#format.levels - 1; level >= last; level--) {
      const index = Number((address >> BigInt(12 + 9 * level)) & 511n);
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
    const bytes = await this.#memory.read(addr(at), TABLE);
    if (bytes === undefined) return undefined;
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    return BigUint64Array.from({ length: ENTRIES }, (_, index) => view.getBigUint64(index * 8, true));
  }

  #canonical(address: Addr): boolean {
    const bits = 12 + 9 * this.#format.levels;
    return addr(BigInt.asIntN(bits, address)) === address;
  }
}

/**
 * The leaf for an address, walked at once: `word` reads eight bytes of physical memory. Undefined if the address is
 * not mapped, or if a table cannot be read.
 */
export function walkNow(
  { levels, root, decode }: PageFormat,
  address: Addr,
  word: (physical: bigint) => bigint | undefined,
): { readonly physical: bigint; readonly size: number; readonly user: boolean } | undefined {
  if (addr(BigInt.asIntN(12 + 9 * levels, address)) !== address) return undefined;
  let table = root;
  let user = true;
  for (let level = levels - 1; level >= 0; level--) {
    const index = (address >> BigInt(12 + 9 * level)) & 511n;
    const raw = word(table + index * 8n);
    const entry = raw === undefined ? undefined : decode(raw, level, address);
    if (entry === undefined) return undefined;
    user &&= entry.rights.user;
    if (entry.kind === 'leaf') return { physical: entry.physical, size: sizeAt(level), user };
    table = entry.physical;
  }
  return undefined;
}

/** Bytes that an entry of a level maps. */
export function sizeAt(level: number): number {
  return 2 ** (12 + 9 * level);
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

function mapping(virtual: Addr, level: number, physical: bigint, rights: Rights): Mapping {
  return { virtual, physical: addr(physical), size: sizeAt(level), ...rights };
}

function both(a: Rights, b: Rights): Rights {
  return {
    readable: a.readable && b.readable,
    writable: a.writable && b.writable,
    executable: a.executable && b.executable,
    user: a.user && b.user,
  };
}
