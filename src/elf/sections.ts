import type { Budget } from '../base/budget.js';
import { asText, textAt } from '../base/file-bytes.js';
import { madeOnce } from '../base/made-once.js';
import { type BytesInPart, wholly } from './byte-source.js';
import type { ElfFile } from './elf.js';

const NOTHING = new Uint8Array(0);

/** Where a unit reads the sections of DWARF; one that is missing is empty. */
export interface SectionSource {
  /** What reading them may cost. */
  readonly budget: Budget;
  /** `.debug_info`, `.debug_str`, ...: the whole section. Throws `ELF_DAMAGED` if it cannot be read or unpacked. */
  get(name: string): Uint8Array;
  /** The same, read in part. */
  inPart(name: string): BytesInPart;
  /** The zero-terminated string at an offset of a string section; undefined outside it or without an end. */
  stringAt(name: string, offset: number): string | undefined;
}

/** The DWARF sections of an ELF, each unpacked on first use. */
export class DwarfSections implements SectionSource {
  readonly #elf: ElfFile;
  readonly #loaded = new Map<string, Uint8Array>();
  readonly #texts = new Map<string, Uint8Array>();
  readonly #parts = new Map<string, BytesInPart>();

  constructor(elf: ElfFile) {
    this.#elf = elf;
  }

  get budget(): Budget {
    return this.#elf.budget;
  }

  get(name: string): Uint8Array {
    return madeOnce(this.#loaded, name, () => this.#elf.section(name) ?? NOTHING);
  }

  inPart(name: string): BytesInPart {
    return madeOnce(this.#parts, name, () => this.#elf.sectionInPart(name) ?? wholly(NOTHING));
  }

  stringAt(name: string, offset: number): string | undefined {
    const text = madeOnce(this.#texts, name, () => asText(this.get(name)));
    return textAt(text, offset, this.#elf.budget, name);
  }
}
