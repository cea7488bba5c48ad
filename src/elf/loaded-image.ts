import type { Addr } from '../base/addr.js';
import type { CodeAddress } from './code-address.js';
import type { ElfFile } from './elf.js';
import type { FileBytes } from './file-bytes.js';
import { ELF_HEADER, type ElfSegment } from './headers.js';
import { RelativeRelocations } from './relocations.js';

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
    for (const part of this.#parts) {
      if (!(at >= part.start && at + length <= part.fileEnd)) continue;
      const offset = part.offset + (at - part.start);
      if (offset + length > this.#file.size) return undefined;
      this.#relocations ??= RelativeRelocations.load(this.#elf);
      return this.#relocations.apply(at, this.#file.range('a segment', offset, length));
    }
    return undefined;
  }

  /** See {@link ElfFile.isLoaded}. */
  has(code: CodeAddress): boolean {
    for (const part of this.#parts) {
      if (code >= part.start + Math.max(0, ELF_HEADER - part.offset) && code < part.end) return true;
    }
    return false;
  }
}
