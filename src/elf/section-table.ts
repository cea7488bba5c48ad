import type { Budget } from '../base/budget.js';
import { RsptraceError } from '../base/errors.js';
import { decompressSection, SHF_COMPRESSED } from './compression.js';
import { SHT } from './constants.js';
import type { FileBytes } from './file-bytes.js';
import type { ElfSection } from './headers.js';

/** The sections of one file by name, read and unpacked on request. */
export class SectionTable {
  readonly all: readonly ElfSection[];
  readonly #file: FileBytes;
  readonly #budget: Budget;
  readonly #byName = new Map<string, ElfSection>();
  /** Sections that were asked for; one that cannot be unpacked keeps its error. */
  readonly #contents = new Map<string, Uint8Array | RsptraceError>();

  constructor(file: FileBytes, all: readonly ElfSection[], budget: Budget) {
    this.#file = file;
    this.all = all;
    this.#budget = budget;
    for (const section of all) {
      if (!this.#byName.has(section.name)) this.#byName.set(section.name, section);
    }
  }

  /** Whether a section of this name exists, compressed or not. */
  has(name: string): boolean {
    return this.hasPlain(name) || (name.startsWith('.debug_') && this.#byName.has(`.z${name.slice(1)}`));
  }

  /** Whether a section is spelt like this. */
  hasPlain(name: string): boolean {
    return this.#byName.has(name);
  }

  /** See {@link ElfFile.section}. */
  content(name: string): Uint8Array | undefined {
    const known = this.#contents.get(name);
    if (known instanceof RsptraceError) throw known;
    if (known !== undefined) return known;
    const legacy = name.startsWith('.debug_') ? `.z${name.slice(1)}` : undefined;
    const header = this.#byName.get(name) ?? (legacy === undefined ? undefined : this.#byName.get(legacy));
    if (header === undefined || header.type === SHT.NOBITS) return undefined;
    // A .dwo file has a section of the same name for each type unit (COMDAT groups): they are one, in their order.
    const headers = name.endsWith('.dwo') ? this.all.filter((section) => section.name === header.name) : [header];
    const bytes = joined(headers.map((section) => this.#load(section, section.name === legacy)));
    this.#contents.set(name, bytes);
    if (bytes instanceof RsptraceError) throw bytes;
    return bytes;
  }

  #load(section: ElfSection, legacy: boolean): Uint8Array | RsptraceError {
    const raw = this.#file.range(section.name, section.offset, section.size);
    return (section.flags & SHF_COMPRESSED) !== 0 || legacy ? this.#unpack(raw, section.name, legacy) : raw;
  }

  /** A section's bytes as they are in the file. */
  raw(section: ElfSection): Uint8Array | undefined {
    return section.type === SHT.NOBITS ? undefined : this.#file.range(section.name, section.offset, section.size);
  }

  /** The error is kept if the section does not unpack, so that it is not tried again. */
  #unpack(raw: Uint8Array, name: string, legacy: boolean): Uint8Array | RsptraceError {
    try {
      return decompressSection(raw, name, legacy, this.#budget);
    } catch (error) {
      if (error instanceof RsptraceError) return error;
      throw error;
    }
  }
}

/** The pieces as one; the first error, if one could not be read. */
function joined(pieces: readonly (Uint8Array | RsptraceError)[]): Uint8Array | RsptraceError {
  const [first] = pieces;
  if (pieces.length === 1 && first !== undefined) return first;
  const error = pieces.find((piece) => piece instanceof RsptraceError);
  return error ?? Buffer.concat(pieces as Uint8Array[]);
}
