// An object file (ET_REL: `.o`, a Linux module) as a loader places it: gABI chapter 4, "Sections" and "Relocation".
// The bytes become those of a file with addresses, so that nothing else has to know of objects:
//
//   addresses   see object-layout.ts
//   segments    one for each kind, whose bytes lie behind the file's own
//   symbols     st_value plus the address of the section
//   contents    compressed ones that have relocations are unpacked, and relocations are applied
//
// As they are in the file: words whose symbol another file defines, and instructions whose relocations are not in
// relocations.ts. Refused: an unknown relocation in debug info or call frames. `.dwo` files have nothing to place.
import { Budget } from '../base/budget.js';
import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import { MemorySource } from './byte-source.js';
import { FileBytes } from './file-bytes.js';
import { type ElfHeader, type ElfSection, ET, isAllocated, readHeader, readSections, SHT } from './headers.js';
import { objectLayout, type Region } from './object-layout.js';
import { Relocations } from './relocations.js';
import { decompressSection, SHF_COMPRESSED } from './section-table.js';

const SHT_RELA = 4;
const SHT_SYMTAB_SHNDX = 18;
const SHN_XINDEX = 0xffff;
const SHN_LORESERVE = 0xff00;
const SHN_ABS = 0xfff1;
const SEGMENT = 56;
const SYMBOL = 24;
const RELA = 24;
/** Cost of a symbol's value. */
const BYTES_OF_VALUE = 32;
/** The file itself unless it is an object file with something to place. Throws `ELF_DAMAGED`, `DWARF_RELOCATABLE`. */
export function placedObject(file: FileBytes): FileBytes {
  const header = readHeader(file, 0n);
  if (header.type !== ET.REL) return file;
  const budget = new Budget(file.path, file.size);
  const sections = readSections(file, header, 0n, budget);
  if (!sections.some(isAllocated)) return file;
  const inFile = sections.reduce((sum, one) => sum + (one.type === SHT.NOBITS ? 0 : one.size), 0);
  if (inFile > file.size) throw file.damaged('its sections overlap');
  const object = new PlacedObject(file, sections, budget);
  object.relocate();
  return new FileBytes(new MemorySource(object.withHeaders(header)), file.path);
}

class PlacedObject {
  readonly #file: FileBytes;
  readonly #sections: readonly ElfSection[];
  readonly #budget: Budget;
  readonly #regions: readonly Region[];
  /** By section. */
  readonly #addresses: Float64Array;
  readonly #unpacked = new Map<number, Uint8Array>();
  /** The file, then regions, then what was compressed, then program headers. */
  readonly #out: Uint8Array;
  /** Where contents lie that have moved in it, by section. */
  readonly #moved = new Map<number, number>();
  readonly #headersAt: number;

  constructor(file: FileBytes, sections: readonly ElfSection[], budget: Budget) {
    this.#file = file;
    this.#sections = sections;
    this.#budget = budget;
    ({ regions: this.#regions, addresses: this.#addresses } = objectLayout(file, sections));
    let end = file.size;
    for (const { info } of sections.filter(isRela)) {
      const target = sections[info];
      if (target === undefined || (target.flags & SHF_COMPRESSED) === 0) continue;
      this.#unpacked.set(info, decompressSection(this.#raw(target), target.name, budget));
    }
    const fromFile = this.#regions.map(({ fileSize }) => fileSize);
    const all = [
      ...fromFile,
      ...[...this.#unpacked.values()].map(({ length }) => length),
      this.#regions.length * SEGMENT,
    ];
    budget.hold(
      all.reduce((sum, size) => sum + size, file.size),
      'the sections of an object file',
    );
    this.#out = new Uint8Array(all.reduce((sum, size) => sum + size, file.size));
    this.#out.set(file.range('the file', 0, file.size));
    for (const { sections, fileSize, start } of this.#regions) {
      for (const one of sections) {
        if (one.type === SHT.NOBITS) continue;
        this.#move(one.index, end + (this.#addresses[one.index] as number) - start, this.#raw(one));
      }
      end += fileSize;
    }
    for (const [index, bytes] of this.#unpacked) {
      this.#move(index, end, bytes);
      end += bytes.length;
    }
    this.#headersAt = end;
  }

  #raw(section: ElfSection): Uint8Array {
    return this.#file.range(section.name, section.offset, section.size);
  }

  #move(index: number, to: number, bytes: Uint8Array): void {
    this.#out.set(bytes, to);
    this.#moved.set(index, to);
  }

  /** A section's bytes where they are now. */
  #content({ index, offset, size }: ElfSection): Uint8Array {
    const at = this.#moved.get(index) ?? offset;
    return this.#out.subarray(at, at + (this.#unpacked.get(index)?.length ?? size));
  }

  relocate(): void {
    const symbols = new Map(
      this.#sections.filter(({ type }) => type === SHT.SYMTAB).map((one) => [one.index, this.#placeSymbols(one)]),
    );
    const relocations = new Relocations(readHeader(this.#file, 0n).machine);
    for (const table of this.#sections.filter(isRela)) {
      const [target, values] = [this.#sections[table.info], symbols.get(table.link)];
      if (target === undefined || target.type === SHT.NOBITS || values === undefined) continue;
      this.#apply(table, target, values, relocations);
    }
  }

  #apply(
    table: ElfSection,
    target: ElfSection,
    values: readonly (bigint | undefined)[],
    relocations: Relocations,
  ): void {
    const bytes = this.#content(target);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const base = BigInt(this.#addresses[target.index] as number);
    const isRead = !isAllocated(target) || target.name === '.eh_frame';
    const count = Math.floor(table.size / RELA);
    this.#budget.spend(count * 4, table.name);
    const r = new ByteReader(this.#raw(table), table.name);
    for (let i = 0; i < count; i++) {
      const at = r.u64n();
      const type = r.u32();
      const symbol = r.u32();
      const addend = r.u64();
      if (symbol >= values.length) throw this.#file.damaged(`${table.name} names symbol ${symbol}, which there is not`);
      const value = values[symbol];
      if (value === undefined && !isRead) continue;
      if (relocations.apply(view, at, type, (value ?? 0n) + addend, base + BigInt(at)) || !isRead) continue;
      throw new RsptraceError(
        'DWARF_RELOCATABLE',
        `${this.#file.path} is an object file whose ${target.name} has a relocation of type ${type}, which is not known`,
        { hint: 'link it (ld -r applies none), or give the linked kernel or program; report the type' },
      );
    }
  }

  /** Gives symbols their addresses, and says them; undefined where another file defines it. */
  #placeSymbols(table: ElfSection): (bigint | undefined)[] {
    const bytes = this.#content(table);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const count = Math.floor(bytes.length / SYMBOL);
    this.#budget.spend(count, table.name);
    this.#budget.hold(count * BYTES_OF_VALUE, table.name);
    const further = this.#sections.find(({ type, link }) => type === SHT_SYMTAB_SHNDX && link === table.index);
    const extended = further && new ByteReader(this.#raw(further), further.name);
    return Array.from({ length: count }, (_, i) => {
      const at = i * SYMBOL;
      const index = view.getUint16(at + 6, true);
      const value = view.getBigUint64(at + 8, true);
      if (index === SHN_ABS || i === 0) return value;
      const section = index === SHN_XINDEX && extended ? extended.at(i * 4).u32() : index;
      if (section === 0 || (index >= SHN_LORESERVE && index !== SHN_XINDEX)) return undefined;
      const base = this.#addresses[section];
      if (base === undefined) throw this.#file.damaged(`a symbol is in section ${section}, which there is not`);
      const placed = BigInt.asUintN(64, value + BigInt(base));
      view.setBigUint64(at + 8, placed, true);
      return placed;
    });
  }

  /** The whole file, whose headers say where things are. */
  withHeaders({ sections: table }: ElfHeader): Uint8Array {
    const view = new DataView(this.#out.buffer);
    view.setBigUint64(32, BigInt(this.#headersAt), true);
    view.setUint16(54, SEGMENT, true);
    view.setUint16(56, this.#regions.length, true);
    let at = this.#file.size;
    for (const [i, { flags, start, fileSize, size }] of this.#regions.entries()) {
      const header = this.#headersAt + i * SEGMENT;
      view.setUint32(header, 1, true);
      view.setUint32(header + 4, flags, true);
      for (const [word, value] of [at, start, start, fileSize, size, 0x1000].entries())
        view.setBigUint64(header + 8 + 8 * word, BigInt(value), true);
      at += fileSize;
    }
    for (const section of this.#sections) {
      const header = table.at + section.index * table.size;
      view.setBigUint64(header + 16, BigInt(this.#addresses[section.index] as number), true);
      const moved = this.#moved.get(section.index);
      if (moved === undefined) continue;
      view.setBigUint64(header + 24, BigInt(moved), true);
      const unpacked = this.#unpacked.get(section.index);
      if (unpacked === undefined) continue;
      view.setBigUint64(header + 8, BigInt(section.flags - SHF_COMPRESSED), true);
      view.setBigUint64(header + 32, BigInt(unpacked.length), true);
    }
    return this.#out;
  }
}

function isRela({ type }: ElfSection): boolean {
  return type === SHT_RELA;
}
