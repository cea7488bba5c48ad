// ELF symbol tables: gABI chapter 4, "Symbol Table" (.symtab, else .dynsym).
//
//   st_name (4) | st_info (1) | st_other (1) | st_shndx (2) | st_value (8) | st_size (8)
//
// Left out: undefined and absolute-section symbols without a type, section and file symbols, local labels (`.L*`) and
// mapping symbols (`$x`, `$d`, `$a`, `$t`, RISC-V and ARM psABI).
import type { Addr } from '../base/addr.js';
import type { Budget } from '../base/budget.js';
import { ByteReader } from '../base/byte-reader.js';
import { type CodeAddress, type CodeSpace, lastNotAbove, signedWord } from './code-address.js';
import type { ElfFile } from './elf.js';
import type { ElfSection } from './headers.js';
import { IntervalIndex, IntervalList } from './intervals.js';
import { asText, textAt } from './text-at.js';

export interface ElfSymbol {
  readonly name: string;
  readonly address: Addr;
  readonly size: number;
  readonly type: 'function' | 'object' | 'other';
  /** It is that of a function which the loader calls once, and which returns the one that is meant (STT_GNU_IFUNC). */
  readonly chooses: boolean;
  readonly binding: 'local' | 'global' | 'weak';
  /**
   * Visible outside its object file, whatever the linker has made of its binding: global, weak, or hidden (gABI,
   * "Symbol Visibility").
   */
  readonly external: boolean;
}

const NAMES = 'the names of symbols';
/** Cost of a symbol in columns and as a range, and during sorting. */
const BYTES_OF_SYMBOL = 256;
const ENTRY = 24;
const SHN_ABS = 0xfff1;
const STT_SECTION = 3;
const STT_FILE = 4;
const STT_TLS = 6;
const STV_INTERNAL = 1;
const STV_HIDDEN = 2;

/** The symbols of an ELF by address and by name. They are kept as columns; a symbol becomes an object on request. */
export class ElfSymbols {
  readonly #codes: CodeSpace;
  readonly #names: Uint8Array;
  readonly #budget: Budget;
  readonly #nameAt: Uint32Array;
  readonly #info: Uint8Array;
  readonly #other: Uint8Array;
  readonly #start: Float64Array;
  readonly #size: Float64Array;
  readonly #ranges: IntervalIndex;
  #byName: Map<string, number[]> | undefined;

  private constructor(elf: ElfFile, names: Uint8Array, rows: readonly Row[]) {
    this.#codes = elf.codes;
    this.#names = asText(names);
    this.#budget = elf.budget;
    this.#nameAt = Uint32Array.from(rows, (row) => row.name);
    this.#info = Uint8Array.from(rows, (row) => row.info);
    this.#other = Uint8Array.from(rows, (row) => row.other);
    this.#start = Float64Array.from(rows, (row) => row.start);
    this.#size = Float64Array.from(rows, (row) => row.size);
    const ranges = new IntervalList();
    for (let i = 0; i < rows.length; i++) ranges.add(this.#start[i] as number, this.#end(i), i);
    this.#ranges = new IntervalIndex(ranges);
  }

  static load(elf: ElfFile): ElfSymbols {
    const table = elf.sections.find((s) => s.name === '.symtab') ?? elf.sections.find((s) => s.name === '.dynsym');
    const strings = table === undefined ? undefined : elf.sections[table.link];
    if (table === undefined || strings === undefined) return new ElfSymbols(elf, new Uint8Array(0), []);
    const names = elf.rawSection(strings) ?? new Uint8Array(0);
    const rows = readRows(elf, table, names);
    // A wider symbol comes before narrower ones at the same address. Of aliases the best name comes first, and is the
    // one that is found.
    rows.sort((a, b) => a.start - b.start || b.size - a.size || rank(b.info) - rank(a.info));
    return new ElfSymbols(elf, names, rows);
  }

  get count(): number {
    return this.#start.length;
  }

  /**
   * The innermost symbol whose range has the address. A symbol without a size (from assembly) reaches to the next
   * symbol, and is used only if no other has the address.
   */
  at(address: Addr): ElfSymbol | undefined {
    const row = this.#rowAt(this.#codes.toCode(address));
    return row < 0 ? undefined : this.#budget.answer(() => this.#symbol(row));
  }

  /** The symbol that {@link at} finds, and all others with the same address: aliases, the best name first. */
  allAt(address: Addr): ElfSymbol[] {
    const row = this.#rowAt(this.#codes.toCode(address));
    if (row < 0) return [];
    const start = this.#start[row];
    const found = [this.#symbol(row)];
    for (let i = row + 1; this.#start[i] === start; i++) {
      if (this.#size[i] === this.#size[row] || this.#size[i] === 0) found.push(this.#symbol(i));
    }
    return found;
  }

  /** The next symbol above an address. */
  above(address: Addr): ElfSymbol | undefined {
    const row = lastNotAbove(this.#start, this.count, this.#codes.toCode(address)) + 1;
    return row < this.count ? this.#symbol(row) : undefined;
  }

  #rowAt(code: CodeAddress): number {
    const sized = this.#ranges.find(code);
    if (sized >= 0) return sized;
    let last = lastNotAbove(this.#start, this.count, code);
    if (last < 0 || this.#size[last] !== 0) return -1;
    while (this.#start[last - 1] === this.#start[last] && this.#size[last - 1] === 0) last--;
    return last;
  }

  /** All symbols of a name, as the file spells it (mangled). */
  named(name: string): ElfSymbol[] {
    if (this.#byName === undefined) {
      this.#byName = new Map();
      for (let i = 0; i < this.count; i++) {
        const name = this.#name(i);
        const known = this.#byName.get(name);
        if (known !== undefined) known.push(i);
        else {
          this.#budget.hold(name.length, NAMES);
          this.#byName.set(name, [i]);
        }
      }
    }
    return (this.#byName.get(name) ?? []).map((i) => this.#symbol(i));
  }

  /** All symbols in order of address. */
  *[Symbol.iterator](): Generator<ElfSymbol> {
    for (let i = 0; i < this.count; i++) yield this.#symbol(i);
  }

  #end(i: number): CodeAddress {
    return (this.#start[i] as number) + (this.#size[i] as number);
  }

  #name(i: number): string {
    return textAt(this.#names, this.#nameAt[i] as number, this.#budget, NAMES) ?? '';
  }

  #symbol(i: number): ElfSymbol {
    const info = this.#info[i] as number;
    const type = info & 15;
    const visibility = (this.#other[i] as number) & 3;
    return {
      name: this.#name(i),
      address: this.#codes.fromCode(this.#start[i] as number),
      size: this.#size[i] as number,
      type: type === 2 || type === 10 ? 'function' : type === 1 ? 'object' : 'other',
      chooses: type === 10,
      binding: info >> 4 === 1 ? 'global' : info >> 4 === 2 ? 'weak' : 'local',
      external: info >> 4 !== 0 || visibility === STV_INTERNAL || visibility === STV_HIDDEN,
    };
  }
}

interface Row {
  readonly name: number;
  readonly info: number;
  readonly other: number;
  readonly start: CodeAddress;
  readonly size: number;
}

function readRows(elf: ElfFile, table: ElfSection, names: Uint8Array): Row[] {
  const bytes = elf.rawSection(table) ?? new Uint8Array(0);
  const r = new ByteReader(bytes, table.name);
  elf.budget.spend(bytes.length / ENTRY, table.name);
  elf.budget.hold((bytes.length / ENTRY) * BYTES_OF_SYMBOL, table.name);
  const rows: Row[] = [];
  for (let i = 1; i < Math.floor(bytes.length / ENTRY); i++) {
    r.offset = i * ENTRY;
    const name = r.u32();
    const info = r.u8();
    const other = r.u8();
    const section = r.u16();
    const [low, high] = [r.u32(), r.u32()];
    const start = section === SHN_ABS ? elf.codes.ofMemory(low, high) : elf.codes.ofFile(low, high);
    const size = signedWord(r.u32(), r.u32());
    const type = info & 15;
    if (section === 0 || type === STT_SECTION || type === STT_FILE || type === STT_TLS) continue;
    if (Number.isNaN(start) || !(size >= 0) || name >= names.length || isLabel(names, name)) continue;
    rows.push({ name, info, other, start, size });
  }
  return rows;
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
