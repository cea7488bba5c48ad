import type { Addr } from '../base/addr.js';
import { ByteReader } from '../base/byte-reader.js';
import { type CodeAddress, type CodeSpace, lastNotAbove } from './code-address.js';
import type { ElfFile } from './elf.js';
import type { FileBytes } from './file-bytes.js';
import { ELF_HEADER, type ElfSection, type ElfSegment, isAllocated } from './headers.js';

// Relative relocations of position-independent programs: gABI chapter 4, "Relocation"; x86-64 psABI R_X86_64_RELATIVE,
// RISC-V psABI R_RISCV_RELATIVE, AArch64 ELF ABI R_AARCH64_RELATIVE, LoongArch ELF psABI R_LARCH_RELATIVE. The loader
// writes load bias + r_addend where the file often has only zeros: vtables and tables of pointers.
//
//   SHT_RELA: r_offset (8) | r_info (8): type in the low half | r_addend (8)
//   SHT_RELR: places, and bitmaps of places; the file has the addends there
//
// Skipped: relocations against symbols, and SHT_REL (no psABI of them uses it).
const SHT_RELA = 4;
export const SHT_RELR = 19;
const ENTRY = 24;
const WORD = 8;
/** Cost of a relocation, in columns and before. */
const BYTES_OF_ROW = 128;
/** By e_machine. */
const relativeType: Readonly<Record<number, number>> = { 62: 8, 183: 1027, 243: 3, 258: 3 };

/** The places of a section SHT_RELR: a word with bit 0 clear is one, one with it set has a bit for each of 63 behind. */
export function* packedPlaces(elf: ElfFile, section: ElfSection): Generator<CodeAddress> {
  const bytes = elf.rawSection(section) ?? new Uint8Array(0);
  const r = new ByteReader(bytes, section.name);
  let next = 0;
  while (r.remaining >= WORD) {
    const [low, high] = [r.u32(), r.u32()];
    elf.budget.spend(64, section.name);
    if ((low & 1) === 0) {
      next = elf.codes.ofFile(low, high);
      if (Number.isNaN(next)) return;
      yield next;
      next += WORD;
      continue;
    }
    for (let bit = 1; bit < 64; bit++)
      if ((((bit < 32 ? low : high) >>> (bit & 31)) & 1) === 1) yield next + WORD * (bit - 1);
    next += WORD * 63;
  }
}

/** Bytes of the file that are loaded at an address; undefined where it has none. */
type InFile = (at: CodeAddress, length: number) => Uint8Array | undefined;

/** The words that a loader fills in, by address. */
class RelativeRelocations {
  readonly #codes: CodeSpace;
  readonly #places: Float64Array;
  readonly #values: Float64Array;

  private constructor(codes: CodeSpace, rows: readonly { readonly place: CodeAddress; readonly value: CodeAddress }[]) {
    this.#codes = codes;
    this.#places = Float64Array.from(rows, ({ place }) => place);
    this.#values = Float64Array.from(rows, ({ value }) => value);
  }

  static load(elf: ElfFile, inFile: InFile): RelativeRelocations {
    const rows: { place: CodeAddress; value: CodeAddress }[] = [];
    const wanted = relativeType[elf.machine];
    for (const section of elf.sections.filter(isAllocated)) {
      for (const place of section.type === SHT_RELR ? packedPlaces(elf, section) : []) {
        elf.budget.hold(BYTES_OF_ROW, section.name);
        const word = inFile(place, WORD);
        const r = word && new ByteReader(word, section.name);
        const value = r ? elf.codes.ofFile(r.u32(), r.u32()) : Number.NaN;
        if (!Number.isNaN(value)) rows.push({ place, value });
      }
      if (section.type !== SHT_RELA) continue;
      const bytes = elf.rawSection(section) ?? new Uint8Array(0);
      const r = new ByteReader(bytes, section.name);
      elf.budget.spend(bytes.length / ENTRY, section.name);
      elf.budget.hold((bytes.length / ENTRY) * BYTES_OF_ROW, section.name);
      while (r.remaining >= ENTRY) {
        const place = elf.codes.ofFile(r.u32(), r.u32());
        const type = r.u32();
        r.skip(4);
        const value = elf.codes.ofFile(r.u32(), r.u32());
        if (type === wanted && !Number.isNaN(place) && !Number.isNaN(value)) rows.push({ place, value });
      }
    }
    rows.sort((a, b) => a.place - b.place);
    return new RelativeRelocations(elf.codes, rows);
  }

  /** Bytes of the file that are loaded at `start`, after the loader's changes; the same array if there are none. */
  apply(start: CodeAddress, bytes: Uint8Array): Uint8Array {
    let index = lastNotAbove(this.#places, this.#places.length, start - WORD) + 1;
    let done: Uint8Array | undefined;
    for (; (this.#places[index] as number) < start + bytes.length; index++) {
      done ??= bytes.slice();
      const word = new Uint8Array(WORD);
      new DataView(word.buffer).setBigUint64(0, this.#codes.fromCode(this.#values[index] as number), true);
      const offset = (this.#places[index] as number) - start;
      for (let i = Math.max(0, -offset); i < WORD && offset + i < bytes.length; i++)
        done[offset + i] = word[i] as number;
    }
    return done ?? bytes;
  }
}

/** The part of memory that a PT_LOAD segment fills, and where its bytes lie in the file. */
interface LoadedPart {
  readonly start: CodeAddress;
  readonly fileEnd: CodeAddress;
  readonly end: CodeAddress;
  readonly offset: number;
}

/** An ELF as its loader puts it into memory. */
export class LoadedImage {
  readonly #elf: ElfFile;
  readonly #file: FileBytes;
  readonly #parts: readonly LoadedPart[];
  #relocations: RelativeRelocations | undefined;

  /** `loads`: the PT_LOAD segments. */
  constructor(elf: ElfFile, file: FileBytes, loads: readonly ElfSegment[]) {
    this.#elf = elf;
    this.#file = file;
    this.#parts = loads.map((s) => {
      const start = elf.codes.toCode(s.address);
      return { start, fileEnd: start + s.fileSize, end: start + s.memorySize, offset: s.offset };
    });
  }

  /** See {@link ElfFile.bytesAt}. */
  bytesAt(address: Addr, length: number): Uint8Array | undefined {
    const at = this.#elf.codes.toCode(address);
    const bytes = this.#inFile(at, length);
    if (bytes === undefined) return undefined;
    this.#relocations ??= RelativeRelocations.load(this.#elf, (place, size) => this.#inFile(place, size));
    return this.#relocations.apply(at, bytes);
  }

  #inFile(at: CodeAddress, length: number): Uint8Array | undefined {
    const part = this.#parts.find(({ start, fileEnd }) => at >= start && at + length <= fileEnd);
    if (part === undefined) return undefined;
    const offset = part.offset + (at - part.start);
    return offset + length > this.#file.size ? undefined : this.#file.range('a segment', offset, length);
  }

  /** See {@link ElfFile.isLoaded}. */
  has(code: CodeAddress): boolean {
    for (const part of this.#parts) {
      if (code >= part.start + Math.max(0, ELF_HEADER - part.offset) && code < part.end) return true;
    }
    return false;
  }
}
