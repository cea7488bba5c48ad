// Relative relocations of position-independent programs: gABI chapter 4, "Relocation"; x86-64 psABI R_X86_64_RELATIVE,
// RISC-V psABI R_RISCV_RELATIVE, AArch64 ELF ABI R_AARCH64_RELATIVE, LoongArch ELF psABI R_LARCH_RELATIVE. The loader
// writes load bias + r_addend where the file often has only zeros: vtables and tables of pointers.
//
//   SHT_RELA: r_offset (8) | r_info (8): type in the low half | r_addend (8)
//
// Skipped: relocations against symbols, SHT_REL (no psABI of them uses it) and SHT_RELR.
import { ByteReader } from '../base/byte-reader.js';
import { type CodeAddress, type CodeSpace, lastNotAbove } from './code-address.js';
import { SHF } from './constants.js';
import type { ElfFile } from './elf.js';

const SHT_RELA = 4;
const ENTRY = 24;
const WORD = 8;
/** Cost of a relocation, in columns and before. */
const BYTES_OF_ROW = 128;
/** By e_machine. */
const relativeType: Readonly<Record<number, number>> = { 62: 8, 183: 1027, 243: 3, 258: 3 };

/** The words that a loader fills in, by address. */
export class RelativeRelocations {
  readonly #codes: CodeSpace;
  readonly #places: Float64Array;
  readonly #values: Float64Array;

  private constructor(codes: CodeSpace, rows: readonly { readonly place: CodeAddress; readonly value: CodeAddress }[]) {
    this.#codes = codes;
    this.#places = Float64Array.from(rows, ({ place }) => place);
    this.#values = Float64Array.from(rows, ({ value }) => value);
  }

  static load(elf: ElfFile): RelativeRelocations {
    const rows: { place: CodeAddress; value: CodeAddress }[] = [];
    const wanted = relativeType[elf.machine];
    for (const section of elf.sections) {
      if (section.type !== SHT_RELA || (section.flags & SHF.ALLOC) === 0) continue;
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
