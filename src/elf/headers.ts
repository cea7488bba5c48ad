// ELF64 little-endian: gABI chapters 4 and 5 (file header, section headers, segments).
//
//   0x00 7f 45 4c 46 | class | data | version | ...     0x28 e_shoff (8)
//   0x10 e_type (2)  | e_machine (2) | e_version (4) | e_entry (8) | e_phoff (8)
//   0x36 e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx (2 each)
//
// Refused: 32-bit, big-endian, and headers that point outside the file. Extended section numbering (e_shnum 0) is
// read.
import { type Addr, addr } from '../base/addr.js';
import type { Budget } from '../base/budget.js';
import type { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import { asText, textAt } from '../base/file-bytes.js';
import type { FileBytes } from './file-bytes.js';

/** Bytes of the header of a 64-bit file. */
export const ELF_HEADER = 64;

/** Where a table of headers lies in the file. */
interface HeaderTable {
  readonly at: number;
  /** Of one entry. */
  readonly size: number;
  readonly count: number;
}

/** The file's own header. */
export interface ElfHeader {
  readonly type: number;
  readonly machine: number;
  /** e_flags: what a machine's ABI says there. */
  readonly flags: number;
  /** In memory: shifted by the load bias. */
  readonly entry: Addr;
  readonly segments: HeaderTable;
  readonly sections: HeaderTable;
  /** The section with the names of sections. */
  readonly namesIndex: number;
}

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
  /** Of a table of relocations: the section that it changes. */
  readonly info: number;
  readonly align: number;
  readonly entrySize: number;
}

export function isAllocated({ flags }: ElfSection): boolean {
  return (flags & SHF.ALLOC) !== 0;
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

/** Throws `ELF_NOT_ELF`, `ARCH_UNSUPPORTED`. */
export function readHeader(file: FileBytes, bias: bigint): ElfHeader {
  const r = file.reader('the ELF header', 0, Math.min(ELF_HEADER, file.size));
  const magic = r.bytes;
  if (magic.length < 4 || magic[0] !== 0x7f || magic[1] !== 0x45 || magic[2] !== 0x4c || magic[3] !== 0x46) {
    throw new RsptraceError('ELF_NOT_ELF', `${file.path} is not an ELF file`, {
      hint: 'give the linked kernel or program with its debug info, not a flat binary made by objcopy',
    });
  }
  if (magic[4] !== 2) throw new RsptraceError('ARCH_UNSUPPORTED', `${file.path} is not a 64-bit ELF file`);
  if (magic[5] !== 1) throw new RsptraceError('ARCH_UNSUPPORTED', `${file.path} is not a little-endian ELF file`);
  r.skip(16);
  const type = r.u16();
  const machine = r.u16();
  r.skip(4);
  const entry = addr(r.u64() + bias);
  const segmentsAt = r.u64n();
  const sectionsAt = r.u64n();
  const flags = r.u32();
  r.skip(2);
  const segments = { at: segmentsAt, size: r.u16(), count: r.u16() };
  const sections = { at: sectionsAt, size: r.u16(), count: r.u16() };
  return { type, machine, flags, entry, segments, sections, namesIndex: r.u16() };
}

/** The segments, at their addresses in memory. Throws `ELF_DAMAGED`. */
export function readSegments(file: FileBytes, { segments }: ElfHeader, bias: bigint): ElfSegment[] {
  const { at, size, count } = segments;
  if (count === 0) return [];
  if (size < 56) throw file.damaged(`a program header of ${size} bytes`);
  const table = file.reader('the program header table', at, size * count);
  return Array.from({ length: count }, (_, i) => {
    const r = table.at(i * size);
    const type = r.u32();
    const flags = r.u32();
    const offset = r.u64n();
    const address = addr(r.u64() + bias);
    const physical = addr(r.u64());
    return { type, flags, offset, address, physical, fileSize: r.u64n(), memorySize: r.u64n() };
  });
}

/** The sections, at their addresses in memory. Throws `ELF_DAMAGED`. */
export function readSections(file: FileBytes, header: ElfHeader, bias: bigint, budget: Budget): ElfSection[] {
  const { at, size } = header.sections;
  if (at === 0) return [];
  if (size < 64) throw file.damaged(`a section header of ${size} bytes`);
  const first = readSection(file.reader('the section header table', at, size), 0, bias);
  const count = header.sections.count === 0 ? first.size : header.sections.count;
  const namesIndex = header.namesIndex === 0xffff ? first.link : header.namesIndex;
  const table = file.reader('the section header table', at, size * count);
  const found = Array.from({ length: count }, (_, i) => readSection(table.at(i * size), i, bias));
  const holder = found[namesIndex];
  if (holder === undefined) return found.map(({ nameOffset: _, ...section }) => section);
  const names = asText(file.range('.shstrtab', holder.offset, holder.size));
  return found.map(({ nameOffset, ...section }) => {
    const name = textAt(names, nameOffset, budget, 'the names of sections');
    if (name === undefined) throw file.damaged(`section ${section.index} has no name in .shstrtab`);
    return { ...section, name };
  });
}

function readSection(r: ByteReader, index: number, bias: bigint): ElfSection & { readonly nameOffset: number } {
  const nameOffset = r.u32();
  const type = r.u32();
  const flags = r.u64n();
  const linked = r.u64();
  const address = (flags & SHF.ALLOC) === 0 ? addr(linked) : addr(linked + bias);
  const offset = r.u64n();
  const size = r.u64n();
  const link = r.u32();
  const rest = { link, info: r.u32(), align: r.u64n(), entrySize: r.u64n() };
  return { index, nameOffset, name: '', type, flags, address, offset, size, ...rest };
}

// ELF types, section types and section flags: System V ABI, "Object Files".
export const ET = { REL: 1, EXEC: 2, DYN: 3, CORE: 4 } as const;
export const SHT = { SYMTAB: 2, NOTE: 7, NOBITS: 8 } as const;
export const SHF = { WRITE: 1, ALLOC: 2, EXECINSTR: 4 } as const;
