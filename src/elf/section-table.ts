import { createRequire } from 'node:module';
import * as zlib from 'node:zlib';
import type { Budget } from '../base/budget.js';
import { ByteReader } from '../base/byte-reader.js';
import { messageOf, partMissing, RsptraceError } from '../base/errors.js';
import { type BytesInPart, wholly } from './byte-source.js';
import type { FileBytes } from './file-bytes.js';
import type { ElfSection } from './headers.js';
import { SHT } from './headers.js';

// Compressed sections: gABI, chapter 4, "Section Compression" (Elf64_Chdr before a zlib or zstd stream).
//
// Refused: other algorithms, the older `.zdebug_*`, a stream that is damaged or unpacks to another size than announced,
// and an announced size beyond 64 times the packed one (and 16 MiB): debug info packs 2 to 10 times.
export const SHF_COMPRESSED = 0x800;
const ELFCOMPRESS_ZLIB = 1;
const ELFCOMPRESS_ZSTD = 2;
const MAX_RATIO = 64;
const ALWAYS_ALLOWED = 16 << 20;

/**
 * Unpacks a section's bytes, after the announced size was charged. Throws `ELF_DAMAGED` with its name,
 * `PART_MISSING`, `ELF_TOO_COSTLY`.
 */
export function decompressSection(raw: Uint8Array, name: string, budget: Budget): Uint8Array {
  const r = new ByteReader(raw, name);
  const type = r.u32();
  r.skip(4);
  const size = r.u64n();
  r.skip(8);
  const packed = raw.subarray(r.offset);
  if (type === ELFCOMPRESS_ZLIB) return unpack(name, size, packed, inflate, budget);
  if (type === ELFCOMPRESS_ZSTD) return unpack(name, size, packed, unzstd(), budget);
  throw damaged(name, `its compression is of an unknown kind, ${type}`);
}

type Unpacker = (packed: Uint8Array, size: number) => Uint8Array;

function unpack(name: string, size: number, packed: Uint8Array, unpacker: Unpacker, budget: Budget): Uint8Array {
  if (size > Math.max(ALWAYS_ALLOWED, packed.length * MAX_RATIO)) {
    throw damaged(name, `${packed.length} bytes cannot unpack to the ${size} that it announces`);
  }
  budget.hold(size, `the compressed section ${name}`);
  budget.spend(Math.floor(size / 8), `the compressed section ${name}`);
  let bytes: Uint8Array;
  try {
    bytes = unpacker(packed, size);
  } catch (cause) {
    throw damaged(name, `it does not unpack: ${messageOf(cause)}`, cause);
  }
  if (bytes.length !== size) throw damaged(name, `it unpacks to ${bytes.length} bytes in place of ${size}`);
  return bytes;
}

const inflate: Unpacker = (packed, size) => zlib.inflateSync(packed, { maxOutputLength: Math.max(1, size) });

type Zstd = (packed: Uint8Array, options: { maxOutputLength: number }) => Uint8Array;

// Node has zstd from 22.15; before that, fzstd is loaded on first use.
function unzstd(): Unpacker {
  const native = (zlib as { zstdDecompressSync?: Zstd }).zstdDecompressSync;
  if (native !== undefined) return (packed, size) => native(packed, { maxOutputLength: Math.max(1, size) });
  let fzstd: typeof import('fzstd');
  try {
    fzstd = createRequire(import.meta.url)('fzstd') as typeof import('fzstd');
  } catch (cause) {
    throw partMissing('fzstd', 'zstd-compressed sections cannot be unpacked', cause);
  }
  return (packed, size) => fzstd.decompress(packed, new Uint8Array(size));
}

function damaged(name: string, what: string, cause?: unknown): RsptraceError {
  return new RsptraceError('ELF_DAMAGED', `the compressed section ${name} is damaged: ${what}`, { cause });
}

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
    return this.#byName.has(name);
  }

  /** See {@link ElfFile.section}. */
  content(name: string): Uint8Array | undefined {
    const known = this.#contents.get(name);
    if (known instanceof RsptraceError) throw known;
    if (known !== undefined) return known;
    const header = this.#byName.get(name);
    if (header === undefined) return undefined;
    const pieces = this.#alike(header).filter(({ type }) => type !== SHT.NOBITS);
    const [first, ...more] = pieces;
    if (first === undefined) return undefined;
    const bytes = more.length === 0 ? this.#load(first) : this.#joined(pieces);
    this.#contents.set(name, bytes);
    if (bytes instanceof RsptraceError) throw bytes;
    return bytes;
  }

  /** In object and .dwo files each type unit has a section of one name (COMDAT groups). They are one, in order. */
  #alike(header: ElfSection): readonly ElfSection[] {
    const isOfUnits = /\.dwo$|^\.debug_(?:info|types)$/.test(header.name);
    return isOfUnits ? this.all.filter(({ name }) => name === header.name) : [header];
  }

  /** See {@link ElfFile.sectionInPart}. */
  inPart(name: string): BytesInPart | undefined {
    const header = this.#byName.get(name);
    const isPlain = header && header.type !== SHT.NOBITS && (header.flags & SHF_COMPRESSED) === 0;
    if (isPlain && this.#alike(header).length === 1) return this.#file.part(name, header.offset, header.size);
    const bytes = this.content(name);
    return bytes && wholly(bytes);
  }

  /** The pieces as one; the first error, if one could not be read. */
  #joined(pieces: readonly ElfSection[]): Uint8Array | RsptraceError {
    const name = pieces[0]?.name ?? '';
    const size = pieces.reduce((sum, piece) => sum + piece.size, 0);
    if (size > this.#file.size) return this.#file.damaged(`its ${pieces.length} sections ${name} overlap`);
    const read = pieces.map((piece) => this.#load(piece));
    const error = read.find((piece) => piece instanceof RsptraceError);
    if (error !== undefined) return error;
    const bytes = read as Uint8Array[];
    this.#budget.hold(
      bytes.reduce((sum, { length }) => sum + length, 0),
      `the sections ${name}`,
    );
    return Buffer.concat(bytes);
  }

  /** The error is kept if the section does not unpack, so that it is not tried again. */
  #load(section: ElfSection): Uint8Array | RsptraceError {
    const raw = this.#file.range(section.name, section.offset, section.size);
    if ((section.flags & SHF_COMPRESSED) === 0) return raw;
    try {
      return decompressSection(raw, section.name, this.#budget);
    } catch (error) {
      if (error instanceof RsptraceError) return error;
      throw error;
    }
  }

  /** A section's bytes as they are in the file. */
  raw(section: ElfSection): Uint8Array | undefined {
    return section.type === SHT.NOBITS ? undefined : this.#file.range(section.name, section.offset, section.size);
  }
}
