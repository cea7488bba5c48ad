// ELF symbol tables: gABI chapter 4, "Symbol Table" (.symtab, else .dynsym).
//
//   st_name (4) | st_info (1) | st_other (1) | st_shndx (2) | st_value (8) | st_size (8)
//
// Constants (absolute symbols without a type, as a linker's `_etext` may be) have a name, but name no address.
// Undefined symbols are left out, and those of sections, files and thread-local storage. So are local labels (`.L*`)
// and mapping symbols (`$x`, `$d`, `$a`, `$t`: psABIs of RISC-V and ARM).
import type { Addr } from '../base/addr.js';
import type { Budget } from '../base/budget.js';
import { ByteReader } from '../base/byte-reader.js';
import { asText, textAt } from '../base/file-bytes.js';
import { type CodeAddress, type CodeSpace, lastNotAbove, signedWord } from './code-address.js';
import type { ElfFile } from './elf.js';
import type { ElfSection } from './headers.js';
import { IntervalIndex, IntervalList } from './intervals.js';

export interface ElfSymbol {
  readonly name: string;
  readonly address: Addr;
  readonly size: number;
  readonly type: 'function' | 'object' | 'other';
  /** It is that of a function which the loader calls once, and which returns the one that is meant (STT_GNU_IFUNC). */
  readonly chooses: boolean;
}

const NAMES = 'the names of symbols';
/** Cost of a symbol in columns and as a range, and during sorting. */
const BYTES_OF_SYMBOL = 256;
const ENTRY = 24;
const SHN_ABS = 0xfff1;
const STT_NOTYPE = 0;
const STT_SECTION = 3;
const STT_FILE = 4;
const STT_TLS = 6;

/** The symbols of an ELF by address and by name. They are kept as columns; a symbol becomes an object on request. */
export class ElfSymbols {
  readonly #codes: CodeSpace;
  readonly #names: Uint8Array;
  readonly #budget: Budget;
  readonly #rows: Rows;
  readonly #count: number;
  readonly #ranges: IntervalIndex;
  /** Where its segments are loaded. */
  readonly #loads: readonly { readonly low: CodeAddress; readonly high: CodeAddress }[];
  #byName: NameTable | undefined;

  private constructor(elf: ElfFile, names: Uint8Array, rows: Rows) {
    this.#codes = elf.codes;
    this.#names = asText(names);
    this.#budget = elf.budget;
    this.#rows = rows;
    const first = rows.isConstant.indexOf(1);
    this.#count = first < 0 ? rows.start.length : first;
    const ranges = new IntervalList();
    for (const [i, start] of rows.start.subarray(0, this.#count).entries())
      ranges.add(start, start + (rows.size[i] as number), i);
    this.#ranges = new IntervalIndex(ranges);
    this.#loads = elf.loads.map(({ address, memorySize }) => {
      const low = elf.codes.toCode(address);
      return { low, high: low + memorySize };
    });
  }

  static load(elf: ElfFile): ElfSymbols {
    const table = elf.sections.find((s) => s.name === '.symtab') ?? elf.sections.find((s) => s.name === '.dynsym');
    const strings = table === undefined ? undefined : elf.sections[table.link];
    if (table === undefined || strings === undefined) return new ElfSymbols(elf, new Uint8Array(0), emptyRows(0));
    const names = elf.rawSection(strings) ?? new Uint8Array(0);
    return new ElfSymbols(elf, names, readRows(elf, table, names));
  }

  /** Those that name an address. */
  get count(): number {
    return this.#count;
  }

  /**
   * The innermost symbol whose range has the address. A symbol without a size (from assembly) reaches to the next
   * symbol in the same segment, and is used only if no other has the address.
   */
  at(address: Addr): ElfSymbol | undefined {
    const row = this.#rowAt(this.#codes.toCode(address));
    return row < 0 ? undefined : this.#budget.answer(() => this.#symbol(row));
  }

  /** The symbol that {@link at} finds, and all others with the same address: aliases, the best name first. */
  allAt(address: Addr): ElfSymbol[] {
    const row = this.#rowAt(this.#codes.toCode(address));
    if (row < 0) return [];
    const { start, size } = this.#rows;
    const found = [this.#symbol(row)];
    for (let i = row + 1; i < this.count && start[i] === start[row]; i++) {
      if (size[i] === size[row] || size[i] === 0) found.push(this.#symbol(i));
    }
    return found;
  }

  /** The next symbol above an address. */
  above(address: Addr): ElfSymbol | undefined {
    const row = lastNotAbove(this.#rows.start, this.count, this.#codes.toCode(address)) + 1;
    return row < this.count ? this.#symbol(row) : undefined;
  }

  #rowAt(code: CodeAddress): number {
    const sized = this.#ranges.find(code);
    if (sized >= 0) return sized;
    const { start, size } = this.#rows;
    let last = lastNotAbove(start, this.count, code);
    if (last < 0 || size[last] !== 0 || !this.#isOneSegment(start[last] as number, code)) return -1;
    while (start[last - 1] === start[last] && size[last - 1] === 0) last--;
    return last;
  }

  /** Or else a mark of an end would be the name of all memory above. */
  #isOneSegment(start: CodeAddress, code: CodeAddress): boolean {
    if (start === code || this.#loads.length === 0) return true;
    return this.#loads.some(({ low, high }) => low <= start && code < high);
  }

  /** All symbols of a name, as the file spells it (mangled). */
  named(name: string): ElfSymbol[] {
    if (this.#byName === undefined) {
      this.#budget.spend(this.#rows.name.length * COST_OF_NAME, NAMES);
      this.#byName = new NameTable(this.#names, this.#rows.name);
    }
    return this.#byName.rowsLike(name).flatMap((row) => (this.#name(row) === name ? this.#symbol(row) : []));
  }

  /** All symbols in order of address. */
  *[Symbol.iterator](): Generator<ElfSymbol> {
    for (let i = 0; i < this.count; i++) yield this.#symbol(i);
  }

  #name(i: number): string {
    return textAt(this.#names, this.#rows.name[i] as number, this.#budget, NAMES) ?? '';
  }

  #symbol(i: number): ElfSymbol {
    const type = (this.#rows.info[i] as number) & 15;
    return {
      name: this.#name(i),
      address: this.#codes.fromCode(this.#rows.start[i] as number),
      size: this.#rows.size[i] as number,
      type: type === 2 || type === 10 ? 'function' : type === 1 ? 'object' : 'other',
      chooses: type === 10,
    };
  }
}

/** Symbols as columns. */
interface Rows {
  readonly name: Uint32Array;
  readonly info: Uint8Array;
  readonly start: Float64Array;
  readonly size: Float64Array;
  /** 1 for a constant. They come last. */
  readonly isConstant: Uint8Array;
}

function emptyRows(count: number): Rows {
  const [info, isConstant] = [new Uint8Array(count), new Uint8Array(count)];
  const [start, size] = [new Float64Array(count), new Float64Array(count)];
  return { name: new Uint32Array(count), info, start, size, isConstant };
}

/** In the order of addresses. */
function readRows(elf: ElfFile, table: ElfSection, names: Uint8Array): Rows {
  const bytes = elf.rawSection(table) ?? new Uint8Array(0);
  const r = new ByteReader(bytes, table.name);
  const most = Math.floor(bytes.length / ENTRY);
  elf.budget.spend(most, table.name);
  elf.budget.hold(most * BYTES_OF_SYMBOL, table.name);
  const all = emptyRows(most);
  let count = 0;
  for (let i = 1; i < most; i++) {
    r.offset = i * ENTRY;
    const name = r.u32();
    const info = r.u8();
    r.skip(1);
    const section = r.u16();
    const [low, high] = [r.u32(), r.u32()];
    const isAbsolute = section === SHN_ABS;
    const start = isAbsolute ? elf.codes.ofMemory(low, high) : elf.codes.ofFile(low, high);
    const size = signedWord(r.u32(), r.u32());
    const type = info & 15;
    if (section === 0 || type === STT_SECTION || type === STT_FILE || type === STT_TLS) continue;
    if (Number.isNaN(start) || !(size >= 0) || name >= names.length || isLabel(names, name)) continue;
    all.name[count] = name;
    all.info[count] = info;
    all.start[count] = start;
    all.size[count] = size;
    all.isConstant[count++] = Number(isAbsolute && type === STT_NOTYPE);
  }
  return sorted(all, count);
}

/**
 * A wider symbol comes before narrower ones at the same address. Of aliases the best name comes first, and is the one
 * that is found.
 */
function sorted(all: Rows, count: number): Rows {
  const { start, size, info, isConstant } = all;
  const order = Uint32Array.from({ length: count }, (_, i) => i).sort(
    (a, b) =>
      (isConstant[a] as number) - (isConstant[b] as number) ||
      (start[a] as number) - (start[b] as number) ||
      (size[b] as number) - (size[a] as number) ||
      rank(info[b] as number) - rank(info[a] as number) ||
      a - b,
  );
  const rows = emptyRows(count);
  for (const key of ['name', 'info', 'start', 'size', 'isConstant'] as const) {
    const [from, to] = [all[key], rows[key]];
    for (let i = 0; i < count; i++) to[i] = from[order[i] as number] as number;
  }
  return rows;
}

/** A name is hashed up to this many bytes. */
const MOST_HASHED = 256;
/** Work of hashing a name. */
const COST_OF_NAME = 16;
const NO_ROW = 0xffff_ffff;

/** Rows by the hash of their names, as chains. */
class NameTable {
  readonly #first: Uint32Array;
  readonly #next: Uint32Array;

  constructor(names: Uint8Array, nameAt: Uint32Array) {
    const count = nameAt.length;
    this.#first = new Uint32Array(2 ** Math.ceil(Math.log2(count + 1))).fill(NO_ROW);
    this.#next = new Uint32Array(count);
    // From the last to the first, so that a chain has them in their order.
    for (let row = count - 1; row >= 0; row--) {
      const slot = this.#slotOf(names, nameAt[row] as number);
      this.#next[row] = this.#first[slot] as number;
      this.#first[slot] = row;
    }
  }

  /** All rows with this name, and maybe others. */
  rowsLike(name: string): number[] {
    const found: number[] = [];
    const slot = this.#slotOf(Buffer.from(name), 0);
    for (let row = this.#first[slot] as number; row !== NO_ROW; row = this.#next[row] as number) found.push(row);
    return found;
  }

  /** By FNV-1a of the zero-terminated name. */
  #slotOf(bytes: Uint8Array, start: number): number {
    let hash = 0x811c9dc5 | 0;
    const end = Math.min(bytes.length, start + MOST_HASHED);
    for (let at = start; at < end && bytes[at] !== 0; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
    return (hash ^ (hash >>> 15)) & (this.#first.length - 1);
  }
}

// `.L...`, and `$x`, `$d`, `$a`, `$t` alone or before a dot or (RISC-V: `$xrv64i2p1...`) an ISA string; also the
// empty name.
function isLabel(names: Uint8Array, at: number): boolean {
  const first = names[at];
  if (first === undefined || first === 0) return true;
  const second = names[at + 1];
  if (first === 0x2e) return second === 0x4c;
  if (first !== 0x24) return false;
  const third = names[at + 2];
  if (second === 0x78) return third === 0 || third === 0x2e || third === 0x72;
  return (second === 0x64 || second === 0x61 || second === 0x74) && (third === 0 || third === 0x2e);
}

// Functions before objects before the rest; global before weak before local.
function rank(info: number): number {
  const type = info & 15;
  const binding = info >> 4;
  return (type === 2 || type === 10 ? 4 : type === 1 ? 2 : 0) + (binding === 1 ? 1 : binding === 2 ? 0.5 : 0);
}
