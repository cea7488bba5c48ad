import type { ElfFile } from './elf.js';

/** Type names of deeply nested generic Rust code reach tens of kilobytes. */
const MAX_STRING = 0x1_0000;
const NOTHING = new Uint8Array(0);

/** The DWARF sections of an ELF, each unpacked on first use; one that is missing is empty. */
export class DwarfSections {
  readonly #elf: ElfFile;
  readonly #loaded = new Map<string, Uint8Array>();
  readonly #texts = new Map<string, Buffer>();

  constructor(elf: ElfFile) {
    this.#elf = elf;
  }

  /** `.debug_info`, `.debug_str`, ...: the whole section. Throws `ELF_DAMAGED` when it cannot be read or unpacked. */
  get(name: string): Uint8Array {
    let bytes = this.#loaded.get(name);
    if (bytes === undefined) {
      bytes = this.#elf.section(name) ?? NOTHING;
      this.#loaded.set(name, bytes);
    }
    return bytes;
  }

  /**
   * The zero-terminated string at an offset of a string section; undefined outside it or without an end. A longer one than any
   * name is cut: entries of a damaged file may all point at the start of one endless string.
   */
  stringAt(name: string, offset: number): string | undefined {
    let text = this.#texts.get(name);
    if (text === undefined) {
      const bytes = this.get(name);
      text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      this.#texts.set(name, text);
    }
    if (offset >= text.length) return undefined;
    const end = text.indexOf(0, offset);
    if (end < 0) return undefined;
    return end - offset > MAX_STRING
      ? `${text.toString('utf8', offset, offset + MAX_STRING)}...`
      : text.toString('utf8', offset, end);
  }
}
