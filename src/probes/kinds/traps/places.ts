import type {
  Architecture,
  TrapEntry,
  TrapExit,
  TrapKind,
  TrapRead,
  TrapSetter,
  TrapTable,
} from '../../../arch/index.js';
import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import type { RegisterReader } from '../../../base/memory-reader.js';
import type { HitMemory, MemoryRequest, Moment } from '../../../calls/index.js';
import type { ElfFile } from '../../../elf/index.js';

const none: readonly never[] = [];
const pageBits = 12n;
const pageMask = (1n << pageBits) - 1n;
/** Bytes of an instruction that ends a trap, and of the code before it that must be the same in a copy. */
const exitBytes = 4;
const shown = 12;

interface PlacesOptions {
  readonly arch: Architecture;
  readonly elf: ElfFile;
  readonly setters: readonly TrapSetter[];
  readonly exits: readonly TrapExit[];
  readonly mayWant: (kind: TrapKind) => boolean;
}

/**
 * Where traps enter a kernel and where they end. The instructions that set entries, and those that end traps, stand in
 * its ELF. The entries follow from what a setter sets when it runs, as a hart's registers show it.
 */
export class TrapPlaces {
  readonly #options: PlacesOptions;
  readonly #setters = new AddressMap<TrapSetter>(64);
  readonly #exits = new AddressMap<TrapExit>(64);
  readonly #entries = new AddressMap<TrapEntry>(64);
  readonly #learned: Addr[] = [];
  /** The tables of entries that are in use, and whether one may have been filled since it was read. */
  readonly #tables = new Map<bigint, TrapTable>();
  #isStale = false;
  /** Pages with entries that the ELF does not have, in which exits were looked for. */
  readonly #searched = new Set<bigint>();

  constructor(options: PlacesOptions) {
    this.#options = options;
    for (const setter of options.setters) this.#setters.set(setter.address, setter);
    for (const exit of options.exits) this.#exits.set(exit.address, exit);
  }

  entryAt(pc: Addr): TrapEntry | undefined {
    return this.#entries.get(pc);
  }

  exitAt(pc: Addr): TrapExit | undefined {
    return this.#exits.get(pc);
  }

  /** An entry is known of which traps may be wanted. */
  get isEntered(): boolean {
    return this.#entries.size > 0;
  }

  /** All that are known. */
  get exits(): readonly Addr[] {
    const { exits } = this.#options;
    return [...exits.map(({ address }) => address), ...this.#learned.filter((place) => this.exitAt(place))];
  }

  isAt(pc: Addr): boolean {
    return this.#entries.get(pc) !== undefined || this.#setters.get(pc) !== undefined || this.exitAt(pc) !== undefined;
  }

  /** Those that the target has shown so far, and those that a hart's registers name. */
  current(registers: RegisterReader): readonly Addr[] {
    this.#add(this.#options.arch.traps?.current(registers) ?? none);
    return this.#learned;
  }

  /** A trap has ended whose entry is not known: it may have come into a table since that was read. */
  missed(): void {
    this.#isStale = this.#tables.size > 0;
  }

  /** Memory that a stop here needs. Asked again with what was read. */
  reads({ pc, registers }: Moment, memory: HitMemory): readonly MemoryRequest[] {
    const setter = this.#setters.get(pc);
    const reads = [this.entryAt(pc), this.exitAt(pc), setter].flatMap((place) => place?.reads(registers) ?? none);
    const set = setter?.sets(registers, readOf(memory));
    if (set && 'table' in set) reads.push(set.table);
    if (this.#isStale) reads.push(...this.#tables.values());
    if (this.#isCopied(pc)) reads.push(...this.#copiesIn(pc).map(({ window }) => window));
    return reads.map(({ address, length }: TrapRead) => ({ address, length }));
  }

  /** Setters that need not be seen any more, because one of their name has set its entry here. */
  spentAt({ pc, registers }: Moment, memory: HitMemory): readonly Addr[] {
    const setter = this.#setters.get(pc);
    if (!setter?.once) return none;
    const set = setter.sets(registers, readOf(memory));
    if ('table' in set || set.length === 0) return none;
    return this.#options.setters.filter(({ once }) => once === setter.once).map(({ address }) => address);
  }

  /** @returns the places that a stop here has shown */
  learn({ pc, registers }: Moment, memory: HitMemory): readonly Addr[] {
    const set = this.#setters.get(pc)?.sets(registers, readOf(memory));
    if (set && 'table' in set) this.#tables.set(set.table.address, set.table);
    const hasTable = this.#isStale || (set !== undefined && 'table' in set);
    return [
      ...(hasTable ? this.#readTables(memory) : none),
      ...(set && !('table' in set) ? this.#add(set) : none),
      ...(this.#isCopied(pc) ? this.#findExits(pc, memory) : none),
    ];
  }

  #readTables(memory: HitMemory): readonly Addr[] {
    this.#isStale = false;
    return [...this.#tables.values()].flatMap((table) => {
      const bytes = memory.bytes(table.address, table.length);
      return typeof bytes === 'string' ? none : this.#add(table.entries(bytes));
    });
  }

  /** @returns those that are new */
  #add(entries: readonly TrapEntry[]): readonly Addr[] {
    const { mayWant } = this.#options;
    const fresh = entries.filter(({ address, kind }) => !(kind && !mayWant(kind)) && !this.#entries.get(address));
    for (const entry of fresh) this.#entries.set(entry.address, entry);
    const places = [...new Set(fresh.map(({ address }) => address))];
    this.#learned.push(...places);
    return places;
  }

  /** Traps enter here a copy of the kernel's code, or another mapping of it, whose exits are not known yet. */
  #isCopied(pc: Addr): boolean {
    const isOwn = this.entryAt(pc) === undefined || this.#options.elf.bytesAt(pc, 1) !== undefined;
    return !isOwn && !this.#searched.has(pc >> pageBits);
  }

  /** Where exits would be in the page of an entry, and the code that shows them. */
  #copiesIn(entry: Addr): readonly { readonly exit: TrapExit; readonly linked: Addr; readonly window: TrapRead }[] {
    const page = (entry >> pageBits) << pageBits;
    return this.#options.exits.map((exit) => {
      const address = addr(page | (exit.address & pageMask));
      const before = Math.min(shown, Number(address - page));
      const window = { address: addOffset(address, -before), length: before + exitBytes };
      return { exit: { ...exit, address }, linked: addOffset(exit.address, -before), window };
    });
  }

  /** @returns the exits that the page of an entry has as the kernel's own code has them */
  #findExits(entry: Addr, memory: HitMemory): readonly Addr[] {
    this.#searched.add(entry >> pageBits);
    const found: Addr[] = [];
    for (const { exit, linked, window } of this.#copiesIn(entry)) {
      const there = memory.bytes(window.address, window.length);
      const own = this.#options.elf.bytesAt(linked, window.length);
      if (typeof there === 'string' || !own || Buffer.compare(there, own) !== 0) continue;
      this.#exits.set(exit.address, exit);
      found.push(exit.address);
    }
    this.#learned.push(...found);
    return found;
  }
}

/** What was read, for the architecture. */
export function readOf(memory: HitMemory): { bytes(address: Addr, length: number): Uint8Array | undefined } {
  return {
    bytes(address, length) {
      const bytes = memory.bytes(address, length);
      return typeof bytes === 'string' ? undefined : bytes;
    },
  };
}
