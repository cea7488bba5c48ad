import { existsSync } from 'node:fs';
import { type Addr, addOffset } from '../base/addr.js';
import { Budget } from '../base/budget.js';
import { messageOf, RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { type ByteSource, type BytesInPart, FileSource, MemorySource } from './byte-source.js';
import { type CodeAddress, CodeSpace } from './code-address.js';
import { type DebugFileOptions, findDebugFile, findSplitPackage, type OpenOptions } from './debug-file.js';
import { FileBytes } from './file-bytes.js';
import {
  type ElfHeader,
  type ElfSection,
  type ElfSegment,
  ET,
  isAllocated,
  readHeader,
  readSections,
  readSegments,
  SHF,
  SHT,
} from './headers.js';
import { LoadedImage } from './loaded-image.js';
import { placedObject } from './object-file.js';
import { SectionTable } from './section-table.js';
import { ElfSymbols } from './symbols.js';

const PT_LOAD = 1;
const PT_INTERP = 3;
const PF_X = 1;
const PT_NOTE = 4;
const NT_GNU_BUILD_ID = 3;

/** gABI, "Note Section". */
export interface ElfNote {
  readonly name: string;
  readonly type: number;
  readonly bytes: Uint8Array;
}

/**
 * An ELF file. Sections are read, and unpacked, on request. All addresses, also those of its debug info, are those in
 * memory: the file's own, shifted by the load bias.
 */
export class ElfFile {
  /** What reading it and its debug info may cost. */
  readonly budget: Budget;
  /** How far from its own addresses the program was loaded; 0 unless made by {@link loadedAt}. */
  readonly loadBias: bigint;
  /** The numbers of its addresses in tables. */
  readonly codes: CodeSpace;
  readonly segments: readonly ElfSegment[];
  readonly #file: FileBytes;
  readonly #header: ElfHeader;
  readonly #sections: SectionTable;
  readonly #image: LoadedImage;
  #symbols: ElfSymbols | undefined;
  #beside: FilesBeside = {};

  private constructor(file: FileBytes, loadBias = 0n) {
    this.#file = file;
    this.budget = new Budget(file.path, file.size);
    this.loadBias = loadBias;
    this.#header = readHeader(file, loadBias);
    this.segments = readSegments(file, this.#header, loadBias);
    const sections = readSections(file, this.#header, loadBias, this.budget);
    const { loads } = this;
    this.codes = new CodeSpace(loads.length > 0 ? loads.map(extentOf) : sections.filter(isAllocated), loadBias);
    this.#sections = new SectionTable(file, sections, this.budget);
    this.#image = new LoadedImage(this, file, loads);
  }

  get path(): string {
    return this.#file.path;
  }

  get size(): number {
    return this.#file.size;
  }

  /**
   * What differs from every other program and its debug files: a build id, and the tables of sections and segments.
   * These are in it because `strip` leaves the id as it is. A sum of what is loaded is in it too, which may have been
   * changed in place. Where there is no id, it is a hash of the file.
   */
  identity(): string[] {
    const { debug, splitPackage } = this.#beside;
    const { buildId, sections, size } = this;
    const sumOf = ({ name, offset, size }: ElfSection): number => this.#file.sum(name, offset, size);
    const table = sections.map((one) => {
      const isLoaded = isAllocated(one) && one.type !== SHT.NOBITS;
      return [one.name, one.offset, one.size, isLoaded ? sumOf(one) : ''].join();
    });
    const loads = this.segments.map((one) => [one.type, one.offset, one.fileSize, one.memorySize].join());
    const own = buildId === undefined ? this.#file.hash() : [buildId, size, ...table, ...loads].join();
    return [own, ...[debug, splitPackage].flatMap((each) => each?.identity() ?? 'none')];
  }

  get type(): number {
    return this.#header.type;
  }

  get machine(): number {
    return this.#header.machine;
  }

  /** `e_flags` of its header. */
  get flags(): number {
    return this.#header.flags;
  }

  get entry(): Addr {
    return this.#header.entry;
  }

  /** The segments that a loader maps. */
  get loads(): readonly ElfSegment[] {
    return this.segments.filter(({ type }) => type === PT_LOAD);
  }

  /** A loader of an operating system starts it. */
  get hasInterpreter(): boolean {
    return this.segments.some(({ type }) => type === PT_INTERP);
  }

  /** Executable segments, also without sections. */
  get code(): readonly ElfSegment[] {
    return this.loads.filter(({ flags }) => (flags & PF_X) !== 0);
  }

  /** Their bytes, where the file has them. */
  codeParts(): (ElfSegment & { readonly bytes: Uint8Array })[] {
    return this.code.flatMap((segment) => {
      const bytes = this.bytesAt(segment.address, segment.fileSize);
      return bytes ? [{ ...segment, bytes }] : [];
    });
  }

  get sections(): readonly ElfSection[] {
    return this.#sections.all;
  }

  /**
   * Opens a file. If its debug info is in a separate file, opens that too: its `.debug_*` sections and symbols then
   * count as this file's. Throws `ELF_UNREADABLE`, `ELF_NOT_MOVABLE`, `DEBUG_FILE_MISMATCH`, or what
   * {@link parse} throws.
   */
  static async open(path: string, options: OpenOptions & { readonly logger?: Logger } = {}): Promise<ElfFile> {
    const elf = ElfFile.#openOne(path);
    elf.#beside = ElfFile.#filesBeside(elf, options);
    const { loadBias = 0n } = options;
    if (loadBias === 0n) return elf;
    if (elf.type === ET.DYN) return elf.loadedAt(loadBias);
    throw new RsptraceError('ELF_NOT_MOVABLE', `${path} is linked to fixed addresses, so no loader moves it`, {
      hint: 'leave --load-bias out',
    });
  }

  /** Files beside this one that belong to it and are read with it. */
  get debugFiles(): readonly string[] {
    const { debug, splitPackage } = this.#beside;
    return [debug, splitPackage].flatMap((file) => (file === undefined ? [] : [file.path]));
  }

  /** The .dwp package with the debug info of units that are skeletons here; undefined if there is none. */
  get splitPackage(): ElfFile | undefined {
    return this.#beside.splitPackage;
  }

  /** Whether it is such a package itself. */
  get isSplitPackage(): boolean {
    return this.has('.debug_cu_index') || this.has('.debug_tu_index');
  }

  /** Folders that may have files with its debug info. */
  get debugDirs(): readonly string[] {
    return this.#beside.options?.debugDirs ?? [];
  }

  /** Another file that its debug info names; undefined if there is none. Throws what {@link parse} throws. */
  beside(path: string): ElfFile | undefined {
    return existsSync(path) ? ElfFile.#openOne(path) : undefined;
  }

  static #filesBeside(elf: ElfFile, options: OpenOptions & { readonly logger?: Logger }): FilesBeside {
    const open = (name: string): ElfFile => ElfFile.#openOne(name);
    const warn = (message: string): void => options.logger?.warn({ elf: elf.path }, message);
    const named = options.debugFile === undefined ? undefined : open(options.debugFile);
    if (named?.isSplitPackage) return { options, splitPackage: named };
    const debug = named || !elf.has('.debug_info') ? findDebugFile(elf, options, open, warn) : undefined;
    return { options, debug, splitPackage: findSplitPackage([elf, debug], options, open, warn) };
  }

  static #openOne(path: string): ElfFile {
    let source: ByteSource;
    try {
      source = new FileSource(path);
      source.read(0, Math.min(64, source.size));
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code;
      if (code === 'ENOENT' || code === 'ENOTDIR') {
        throw new RsptraceError('ELF_UNREADABLE', `there is no file ${path}`, { cause });
      }
      throw new RsptraceError('ELF_UNREADABLE', `${path} cannot be read: ${messageOf(cause)}`, { cause });
    }
    return new ElfFile(placedObject(new FileBytes(source, path)));
  }

  /**
   * The same program, shifted by this distance to the addresses where a loader has put it. Its debug file is shifted
   * too.
   */
  loadedAt(bias: bigint): ElfFile {
    const there = new ElfFile(this.#file, bias);
    there.#beside = { ...this.#beside, debug: this.#beside.debug?.loadedAt(bias) };
    return there;
  }

  /** Throws `ELF_NOT_ELF`, `ARCH_UNSUPPORTED`, `ELF_DAMAGED`. `name` is used in messages. */
  static parse(bytes: Uint8Array, name: string): ElfFile {
    return new ElfFile(placedObject(new FileBytes(new MemorySource(bytes), name)));
  }

  /** The GNU build id in hex, from .note.gnu.build-id or a PT_NOTE segment. */
  get buildId(): string | undefined {
    const sections = this.sections.filter(({ type }) => type === SHT.NOTE);
    const segments = this.segments.flatMap((s) => (s.type === PT_NOTE ? { offset: s.offset, size: s.fileSize } : []));
    for (const { offset, size } of [...sections, ...segments])
      for (const { name, type, bytes } of this.#notesIn(offset, size))
        if (type === NT_GNU_BUILD_ID && name === 'GNU') return Buffer.from(bytes).toString('hex');
    return undefined;
  }

  /** From .symtab, which a stripped program has in its debug file only; else from .dynsym. */
  get symbols(): ElfSymbols {
    this.#symbols ??= this.#sections.has('.symtab')
      ? ElfSymbols.load(this)
      : (this.#beside.debug?.symbols ?? ElfSymbols.load(this));
    return this.#symbols;
  }

  /**
   * A section's bytes, from the debug file if that has the section; unpacked if compressed. Undefined if the section
   * does not exist or has no bytes in the file. Throws `ELF_DAMAGED`.
   */
  section(name: string): Uint8Array | undefined {
    if (this.#beside.debug?.has(name) && isDebugSection(name)) return this.#beside.debug.section(name);
    return this.#sections.content(name);
  }

  /** The same, read in part where it is not compressed. */
  sectionInPart(name: string): BytesInPart | undefined {
    if (this.#beside.debug?.has(name) && isDebugSection(name)) return this.#beside.debug.sectionInPart(name);
    return this.#sections.inPart(name);
  }

  /** A section's bytes as they are in the file. */
  rawSection(section: ElfSection): Uint8Array | undefined {
    return this.#sections.raw(section);
  }

  /** Whether a section of this name exists, compressed or not. */
  has(name: string): boolean {
    if (isDebugSection(name) && this.#beside.debug?.has(name)) return true;
    return this.#sections.has(name);
  }

  /**
   * The bytes that the file loads at an address. Pointers of a position-independent program have the values that its
   * loader gives them. Undefined if any byte is outside the segments' file parts (.bss included).
   */
  bytesAt(address: Addr, length: number): Uint8Array | undefined {
    return this.#image.bytesAt(address, length);
  }

  /**
   * Whether a code address (see code-address.ts) is inside a PT_LOAD segment. Dead ranges of discarded functions are
   * not. Nor are those at 0 if the ELF header itself is loaded there (position-independent programs).
   */
  isLoaded(code: CodeAddress): boolean {
    return this.#image.has(code);
  }

  /** Whether an address lies in a section with code. */
  isCode(address: bigint): boolean {
    return this.sections.some(
      (one) => isCode(one) && address >= one.address && address < one.address + BigInt(one.size),
    );
  }

  /** The 8-aligned data of the program's sections, a view of each and its address: vtables, and other constants. */
  *constants(): Generator<{ readonly address: Addr; readonly view: DataView }> {
    for (const one of this.sections) {
      if (!isAllocated(one) || isCode(one) || one.type === SHT.NOBITS) continue;
      const skip = Number(-one.address & 7n);
      const bytes = one.size > skip ? this.bytesAt(addOffset(one.address, skip), one.size - skip) : undefined;
      const view = bytes && new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      if (view) yield { address: addOffset(one.address, skip), view };
    }
  }

  /** The notes of the PT_NOTE segments. */
  get notes(): ElfNote[] {
    return this.segments.flatMap((s) => (s.type === PT_NOTE ? [...this.#notesIn(s.offset, s.fileSize)] : []));
  }

  // A note: namesz, descsz, type (4 each), name and desc each padded to 4.
  *#notesIn(offset: number, size: number): Generator<ElfNote> {
    if (offset + size > this.#file.size) return;
    const r = this.#file.reader('a note', offset, size);
    while (r.remaining >= 12) {
      const nameSize = r.u32();
      const descSize = r.u32();
      const type = r.u32();
      const padded = (nameSize + 3) & ~3;
      if (padded < 0 || padded + descSize > r.remaining) return;
      const name = Buffer.from(r.take(padded)).toString('latin1', 0, Math.max(nameSize - 1, 0));
      const bytes = r.take(descSize);
      r.skip(Math.min(-descSize & 3, r.remaining));
      yield { name, type, bytes };
    }
  }
}

/** Files with an ELF's debug info, and how they were searched for. */
interface FilesBeside {
  readonly debug?: ElfFile | undefined;
  readonly splitPackage?: ElfFile | undefined;
  readonly options?: DebugFileOptions;
}

function extentOf({ address, memorySize: size }: ElfSegment): { readonly address: Addr; readonly size: number } {
  return { address, size };
}

function isCode({ flags }: ElfSection): boolean {
  return (flags & SHF.EXECINSTR) !== 0;
}

/** What a debug file has in place of the program's content. */
function isDebugSection(name: string): boolean {
  return name.startsWith('.debug_') || name === '.gnu_debugaltlink';
}
