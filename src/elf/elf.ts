// ELF64 little-endian: gABI chapters 4 and 5 (file header, section headers, segments, notes).
//
//   0x00 7f 45 4c 46 | class | data | version | ...     0x28 e_shoff (8)   0x3a e_shentsize, e_shnum, e_shstrndx (2 each)
//   0x10 e_type (2)  | e_machine (2) | e_version (4) | e_entry (8) | e_phoff (8)
//
// Refused: 32-bit, big-endian, and headers that point outside the file. Extended section numbering (e_shnum 0) is
// read.
import { type Addr, addr } from '../base/addr.js';
import { Budget } from '../base/budget.js';
import { ByteReader } from '../base/byte-reader.js';
import { messageOf, RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { type ByteSource, FileSource, MemorySource } from './byte-source.js';
import { CodeSpace } from './code-address.js';
import { decompressSection, SHF_COMPRESSED } from './compression.js';
import { SHF, SHT } from './constants.js';
import { type DebugFileOptions, findDebugFile } from './debug-file.js';
import { RelativeRelocations } from './relocations.js';
import { ElfSymbols } from './symbols.js';
import { asText, textAt } from './text-at.js';

/** Bytes of the header of a 64-bit file. */
const ELF_HEADER = 64;
const PT_LOAD = 1;
const PT_NOTE = 4;
const NT_GNU_BUILD_ID = 3;

export interface ElfSection {
  readonly index: number;
  readonly name: string;
  readonly type: number;
  readonly flags: number;
  readonly address: Addr;
  readonly offset: number;
  /** Bytes in the file, before decompression. */
  readonly size: number;
  readonly link: number;
  readonly entrySize: number;
}

export interface ElfSegment {
  readonly type: number;
  readonly flags: number;
  readonly address: Addr;
  readonly physical: Addr;
  readonly offset: number;
  readonly fileSize: number;
  /** The header's value; more than `fileSize` if .bss follows. */
  readonly memorySize: number;
}

/**
 * An ELF file. Sections are read, and unpacked, on request. All addresses, also those of its debug info, are those in
 * memory: the file's own, shifted by the load bias.
 */
export class ElfFile {
  readonly path: string;
  /** What reading it and its debug info may cost. */
  readonly budget: Budget;
  /** How far from its own addresses the program was loaded; 0 unless made by {@link loadedAt}. */
  readonly loadBias: bigint;
  /** The numbers of its addresses in tables. */
  readonly codes: CodeSpace;
  readonly machine: number;
  readonly type: number;
  readonly entry: Addr;
  readonly sections: readonly ElfSection[];
  readonly segments: readonly ElfSegment[];
  readonly #source: ByteSource;
  readonly #byName = new Map<string, ElfSection>();
  /** Sections that were asked for; one that cannot be unpacked keeps its error. */
  readonly #contents = new Map<string, Uint8Array | RsptraceError>();
  readonly #loads: readonly {
    readonly start: number;
    readonly fileEnd: number;
    readonly end: number;
    readonly offset: number;
  }[];
  #symbols: ElfSymbols | undefined;
  #relocations: RelativeRelocations | undefined;
  #debugFile: ElfFile | undefined;

  private constructor(source: ByteSource, path: string, loadBias = 0n) {
    this.#source = source;
    this.path = path;
    this.budget = new Budget(path, source.size);
    this.loadBias = loadBias;
    const header = this.#reader('the ELF header', 0, Math.min(64, source.size));
    const magic = header.bytes;
    if (magic.length < 4 || magic[0] !== 0x7f || magic[1] !== 0x45 || magic[2] !== 0x4c || magic[3] !== 0x46) {
      throw new RsptraceError('ELF_NOT_ELF', `${path} is not an ELF file`, {
        hint: 'give the linked kernel or program with its debug info, not a flat binary made by objcopy',
      });
    }
    if (magic[4] !== 2) throw new RsptraceError('ELF_NOT_64', `${path} is not a 64-bit ELF file`);
    if (magic[5] !== 1) throw new RsptraceError('ELF_BIG_ENDIAN', `${path} is not a little-endian ELF file`);
    header.skip(16);
    this.type = header.u16();
    this.machine = header.u16();
    header.skip(4);
    this.entry = this.#loaded(header.u64());
    const segmentsAt = header.u64n();
    const sectionsAt = header.u64n();
    header.skip(6);
    const segmentSize = header.u16();
    const segmentCount = header.u16();
    const sectionSize = header.u16();
    const sectionCount = header.u16();
    const namesIndex = header.u16();
    this.segments = this.#readSegments(segmentsAt, segmentSize, segmentCount);
    this.sections = this.#readSections(sectionsAt, sectionSize, sectionCount, namesIndex);
    const parts = this.segments.filter(({ type }) => type === PT_LOAD);
    this.codes = new CodeSpace(parts.length > 0 ? parts.map(extentOf) : this.sections.filter(isAllocated), loadBias);
    for (const section of this.sections) {
      if (!this.#byName.has(section.name)) this.#byName.set(section.name, section);
    }
    this.#loads = parts.map((s) => {
      const start = this.codes.toCode(s.address);
      return { start, fileEnd: start + s.fileSize, end: start + s.memorySize, offset: s.offset };
    });
  }

  /**
   * Opens a file. If its debug info is in a separate file, opens that too: its `.debug_*` sections and symbols then
   * count as this file's. Throws `ELF_NOT_FOUND`, `ELF_UNREADABLE`, `DEBUG_FILE_MISMATCH`, or what {@link parse}
   * throws.
   */
  static async open(path: string, options: DebugFileOptions & { readonly logger?: Logger } = {}): Promise<ElfFile> {
    const elf = ElfFile.#openOne(path);
    if (options.debugFile !== undefined || !elf.has('.debug_info')) {
      const warn = (message: string): void => options.logger?.warn({ elf: path }, message);
      elf.#debugFile = findDebugFile(elf, options, (name) => ElfFile.#openOne(name), warn);
    }
    return elf;
  }

  /** Files beside this one that belong to it and are read with it. */
  get debugFiles(): readonly string[] {
    return this.#debugFile === undefined ? [] : [this.#debugFile.path];
  }

  static #openOne(path: string): ElfFile {
    let source: ByteSource;
    try {
      source = new FileSource(path);
      source.read(0, Math.min(64, source.size));
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code;
      if (code === 'ENOENT' || code === 'ENOTDIR') {
        throw new RsptraceError('ELF_NOT_FOUND', `there is no file ${path}`, { cause });
      }
      throw new RsptraceError('ELF_UNREADABLE', `${path} cannot be read: ${messageOf(cause)}`, { cause });
    }
    return new ElfFile(source, path);
  }

  /**
   * The same program, shifted by this distance to the addresses where a loader has put it. Its debug file is shifted
   * too.
   */
  loadedAt(bias: bigint): ElfFile {
    const there = new ElfFile(this.#source, this.path, bias);
    there.#debugFile = this.#debugFile?.loadedAt(bias);
    return there;
  }

  /** Throws `ELF_NOT_ELF`, `ELF_NOT_64`, `ELF_BIG_ENDIAN`, `ELF_DAMAGED`. `name` is used in messages. */
  static parse(bytes: Uint8Array, name: string): ElfFile {
    return new ElfFile(new MemorySource(bytes), name);
  }

  /** The GNU build id in hex, from .note.gnu.build-id or a PT_NOTE segment. */
  get buildId(): string | undefined {
    for (const s of this.sections) {
      const id = s.type === SHT.NOTE ? this.#buildIdIn(s.offset, s.size) : undefined;
      if (id !== undefined) return id;
    }
    for (const s of this.segments) {
      const id = s.type === PT_NOTE ? this.#buildIdIn(s.offset, s.fileSize) : undefined;
      if (id !== undefined) return id;
    }
    return undefined;
  }

  /** From .symtab, which a stripped program has in its debug file only; else from .dynsym. */
  get symbols(): ElfSymbols {
    this.#symbols ??= this.#byName.has('.symtab')
      ? ElfSymbols.load(this)
      : (this.#debugFile?.symbols ?? ElfSymbols.load(this));
    return this.#symbols;
  }

  /** Where the debug info is, when it is in a file of its own. */
  get debugPath(): string | undefined {
    return this.#debugFile?.path;
  }

  /**
   * A section's bytes, from the debug file if that has the section. Unpacked if compressed (SHF_COMPRESSED, or the
   * older `.zdebug_*` in place of `.debug_*`). Undefined if the section does not exist or has no bytes in the file.
   * Throws `ELF_DAMAGED`.
   */
  section(name: string): Uint8Array | undefined {
    if (this.#debugFile?.has(name) && isDebugSection(name)) return this.#debugFile.section(name);
    const known = this.#contents.get(name);
    if (known instanceof RsptraceError) throw known;
    if (known !== undefined) return known;
    const legacy = name.startsWith('.debug_') ? `.z${name.slice(1)}` : undefined;
    const header = this.#byName.get(name) ?? (legacy === undefined ? undefined : this.#byName.get(legacy));
    if (header === undefined || header.type === SHT.NOBITS) return undefined;
    const raw = this.#range(header.name, header.offset, header.size);
    const packed = (header.flags & SHF_COMPRESSED) !== 0 || header.name === legacy;
    const bytes = packed ? this.#unpack(raw, header.name, header.name === legacy) : raw;
    this.#contents.set(name, bytes);
    if (bytes instanceof RsptraceError) throw bytes;
    return bytes;
  }

  /** The error is kept if the section does not unpack, so that it is not tried again. */
  #unpack(raw: Uint8Array, name: string, legacy: boolean): Uint8Array | RsptraceError {
    try {
      return decompressSection(raw, name, legacy, this.budget);
    } catch (error) {
      if (error instanceof RsptraceError) return error;
      throw error;
    }
  }

  /** A section's bytes as they are in the file. */
  rawSection(section: ElfSection): Uint8Array | undefined {
    return section.type === SHT.NOBITS ? undefined : this.#range(section.name, section.offset, section.size);
  }

  /** Whether a section of this name exists, compressed or not. */
  has(name: string): boolean {
    if (isDebugSection(name) && this.#debugFile?.has(name)) return true;
    return this.#byName.has(name) || (name.startsWith('.debug_') && this.#byName.has(`.z${name.slice(1)}`));
  }

  /**
   * The bytes that the file loads at an address. Pointers of a position-independent program have the values that its
   * loader gives them. Undefined if any byte is outside the segments' file parts (.bss included).
   */
  bytesAt(address: Addr, length: number): Uint8Array | undefined {
    const at = this.codes.toCode(address);
    for (const load of this.#loads) {
      if (!(at >= load.start && at + length <= load.fileEnd)) continue;
      const offset = load.offset + (at - load.start);
      if (offset + length > this.#source.size) return undefined;
      this.#relocations ??= RelativeRelocations.load(this);
      return this.#relocations.apply(at, this.#source.read(offset, length));
    }
    return undefined;
  }

  /**
   * Whether a code address (see code-address.ts) is inside a PT_LOAD segment. Dead ranges of discarded functions are
   * not. Nor are those at 0 if the ELF header itself is loaded there (position-independent programs).
   */
  isLoaded(code: number): boolean {
    for (const load of this.#loads) {
      if (code >= load.start + Math.max(0, ELF_HEADER - load.offset) && code < load.end) return true;
    }
    return false;
  }

  #loaded(linked: bigint): Addr {
    return addr(linked + this.loadBias);
  }

  #damaged(what: string): RsptraceError {
    return new RsptraceError('ELF_DAMAGED', `${this.path} is damaged: ${what}`, {
      hint: 'the file may have been cut off while it was copied; build it again',
    });
  }

  #range(name: string, offset: number, size: number): Uint8Array {
    if (offset + size > this.#source.size) {
      throw this.#damaged(`${name} at offset 0x${offset.toString(16)}, 0x${size.toString(16)} bytes, is past the end`);
    }
    return this.#source.read(offset, size);
  }

  #reader(name: string, offset: number, size: number): ByteReader {
    return new ByteReader(this.#range(name, offset, size), name);
  }

  #readSegments(at: number, size: number, count: number): ElfSegment[] {
    if (count === 0) return [];
    if (size < 56) throw this.#damaged(`a program header of ${size} bytes`);
    const table = this.#reader('the program header table', at, size * count);
    return Array.from({ length: count }, (_, i) => {
      const r = table.at(i * size);
      const type = r.u32();
      const flags = r.u32();
      const offset = r.u64n();
      const address = this.#loaded(r.u64());
      const physical = addr(r.u64());
      return { type, flags, offset, address, physical, fileSize: r.u64n(), memorySize: r.u64n() };
    });
  }

  #readSections(at: number, size: number, headerCount: number, headerNames: number): ElfSection[] {
    if (at === 0) return [];
    if (size < 64) throw this.#damaged(`a section header of ${size} bytes`);
    const first = this.#section(this.#reader('the section header table', at, size), 0);
    const count = headerCount === 0 ? first.size : headerCount;
    const namesIndex = headerNames === 0xffff ? first.link : headerNames;
    const table = this.#reader('the section header table', at, size * count);
    const found = Array.from({ length: count }, (_, i) => this.#section(table.at(i * size), i));
    const holder = found[namesIndex];
    if (holder === undefined) return found.map(({ nameOffset: _, ...section }) => section);
    const names = asText(this.#range('.shstrtab', holder.offset, holder.size));
    return found.map(({ nameOffset, ...section }) => {
      const name = textAt(names, nameOffset, this.budget, 'the names of sections');
      if (name === undefined) throw this.#damaged(`section ${section.index} has no name in .shstrtab`);
      return { ...section, name };
    });
  }

  #section(r: ByteReader, index: number): ElfSection & { readonly nameOffset: number } {
    const nameOffset = r.u32();
    const type = r.u32();
    const flags = r.u64n();
    const linked = r.u64();
    const address = (flags & SHF.ALLOC) === 0 ? addr(linked) : this.#loaded(linked);
    const offset = r.u64n();
    const size = r.u64n();
    const link = r.u32();
    r.skip(4 + 8);
    return { index, nameOffset, name: '', type, flags, address, offset, size, link, entrySize: r.u64n() };
  }

  // A note: namesz, descsz, type (4 each), name and desc each padded to 4.
  #buildIdIn(offset: number, size: number): string | undefined {
    if (offset + size > this.#source.size) return undefined;
    const r = this.#reader('a note', offset, size);
    while (r.remaining >= 12) {
      const nameSize = r.u32();
      const descSize = r.u32();
      const type = r.u32();
      const padded = (nameSize + 3) & ~3;
      if (padded < 0 || padded + descSize > r.remaining) return undefined;
      const name = r.take(padded);
      const desc = r.take(descSize);
      r.skip(Math.min(-descSize & 3, r.remaining));
      if (type === NT_GNU_BUILD_ID && nameSize === 4 && name[0] === 0x47 && name[1] === 0x4e && name[2] === 0x55) {
        return Buffer.from(desc).toString('hex');
      }
    }
    return undefined;
  }
}

function extentOf({ address, memorySize: size }: ElfSegment): { readonly address: Addr; readonly size: number } {
  return { address, size };
}

function isAllocated({ flags }: ElfSection): boolean {
  return (flags & SHF.ALLOC) !== 0;
}

/** What a debug file has in place of the program's content. */
function isDebugSection(name: string): boolean {
  return name.startsWith('.debug_') || name === '.gnu_debugaltlink';
}
