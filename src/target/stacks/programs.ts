import { type Addr, addOffset, addr } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import { type ElfFile, SHF } from '../../elf/index.js';
import { pageBytes } from '../index.js';
import { executable } from '../unwind/index.js';

/** Bytes that a program's file loads at an address. */
interface Piece {
  readonly address: Addr;
  readonly bytes: Uint8Array;
}

/** What memory says of a program, where it differs from another one. */
type Verdict = 'it' | 'not it' | 'nothing';

/** So large are the pieces that are compared where two programs differ, and so many, a page each. */
const pieceBytes = 64;
const mostPieces = 8;

/**
 * Which of several programs has its code in some memory. Programs in address spaces of their own are linked at the same
 * addresses, so an address says nothing: the page around it must have the code of the file, byte for byte. Of those
 * that are the same there, places decide where they differ: the build id, and other code.
 */
export class Programs {
  readonly all: readonly ElfFile[];
  readonly #places = new Map<ElfFile, Map<ElfFile, readonly Piece[]>>();
  /** Of each program its code by page. */
  readonly #pages = new Map<ElfFile, Map<bigint, readonly Piece[]>>();

  constructor(all: readonly ElfFile[]) {
    this.all = all;
  }

  /**
   * The program whose code is at an address; several if memory does not distinguish them, none if it is not theirs.
   * `also` may be there as well, as was found out before.
   */
  async at(address: Addr, memory: MemoryReader, also: readonly ElfFile[] = []): Promise<readonly ElfFile[]> {
    const start = addr(address & -BigInt(pageBytes));
    const mapped = this.all.filter((elf) => this.#around(elf, address).some((piece) => holds(piece, address)));
    if (mapped.length === 0) return also;
    const page = await memory.read(start, pageBytes);
    const same = page === undefined ? [] : mapped.filter((elf) => hasAll(this.#around(elf, address), start, page));
    return await this.#matching([...also, ...same], memory);
  }

  /** Whether these two have the same code, wherever they are. */
  areSame(one: ElfFile, other: ElfFile): boolean {
    return this.#placesOf(one, other).length === 0 && this.#placesOf(other, one).length === 0;
  }

  async #matching(found: readonly ElfFile[], memory: MemoryReader): Promise<readonly ElfFile[]> {
    if (found.length < 2) return found;
    const left = new Set(found);
    const beats = new Map<ElfFile, Set<ElfFile>>(found.map((elf) => [elf, new Set()]));
    for (const elf of found) {
      for (const other of found) {
        const verdict = elf === other ? 'nothing' : await verdictOf(this.#placesOf(elf, other), memory);
        if (verdict === 'not it') left.delete(elf);
        if (verdict === 'it') beats.get(elf)?.add(other);
      }
    }
    const rest = [...left];
    const first = rest.filter((elf) => rest.every((other) => other === elf || beats.get(elf)?.has(other)));
    return first.length === 1 ? first : rest;
  }

  #around(elf: ElfFile, address: Addr): readonly Piece[] {
    const pages = madeOnce(this.#pages, elf, () => new Map());
    return madeOnce(pages, pageOf(address), () => codeAround(elf, address));
  }

  #placesOf(elf: ElfFile, other: ElfFile): readonly Piece[] {
    const known = madeOnce(this.#places, elf, () => new Map());
    return madeOnce(known, other, () => differences(elf, other));
  }
}

async function verdictOf(places: readonly Piece[], memory: MemoryReader): Promise<Verdict> {
  let verdict: Verdict = 'nothing';
  for (const { address, bytes } of places) {
    const there = await memory.read(address, bytes.length);
    if (there === undefined) continue;
    if (Buffer.compare(there, bytes) !== 0) return 'not it';
    verdict = 'it';
  }
  return verdict;
}

/** Where a program has what another has not: its build id if that is loaded, then a piece a page of its code. */
function differences(elf: ElfFile, other: ElfFile): readonly Piece[] {
  const found: Piece[] = [];
  for (const piece of piecesOf(elf)) {
    const last = found.at(-1);
    if (last !== undefined && pageOf(last.address) === pageOf(piece.address)) continue;
    const there = other.bytesAt(piece.address, piece.bytes.length);
    if (there !== undefined && Buffer.compare(there, piece.bytes) === 0) continue;
    found.push(piece);
    if (found.length === mostPieces) break;
  }
  return found;
}

function* piecesOf(elf: ElfFile): Generator<Piece> {
  for (const { name, flags, address, size } of elf.sections) {
    if (name === buildIdSection && (flags & SHF.ALLOC) !== 0) yield* piecesIn(elf, address, size);
  }
  for (const { low, high } of executable(elf)) yield* piecesIn(elf, elf.codes.fromCode(low), high - low);
}

const buildIdSection = '.note.gnu.build-id';

function* piecesIn(elf: ElfFile, start: Addr, size: number): Generator<Piece> {
  for (let at = 0; at < size; ) {
    const address = addOffset(start, at);
    const length = Math.min(pieceBytes, size - at, pageBytes - Number(address % BigInt(pageBytes)));
    elf.budget.spend(length, 'code that is compared');
    const bytes = elf.bytesAt(address, length);
    if (bytes !== undefined) yield { address, bytes };
    at += length;
  }
}

/** A program's code in the page of an address. */
function codeAround(elf: ElfFile, address: Addr): Piece[] {
  const from = elf.codes.toCode(address) - Number(address % BigInt(pageBytes));
  return executable(elf).flatMap(({ low, high }) => {
    const [begin, end] = [Math.max(low, from), Math.min(high, from + pageBytes)];
    const bytes = begin < end ? elf.bytesAt(elf.codes.fromCode(begin), end - begin) : undefined;
    return bytes === undefined ? [] : [{ address: elf.codes.fromCode(begin), bytes }];
  });
}

function hasAll(pieces: readonly Piece[], start: Addr, page: Uint8Array): boolean {
  return pieces.every(({ address, bytes }) => {
    const at = Number(address - start);
    return Buffer.compare(page.subarray(at, at + bytes.length), bytes) === 0;
  });
}

function holds({ address: start, bytes }: Piece, address: Addr): boolean {
  return address >= start && address < start + BigInt(bytes.length);
}

function pageOf(address: Addr): bigint {
  return address / BigInt(pageBytes);
}
