import { type Addr, addOffset, addr, pointsTo } from '../../base/addr.js';
import { addTo } from '../../base/made-once.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import { firstWhere } from '../../base/search.js';
import { lastNotAbove } from '../../elf/index.js';
import type { Region } from './memory-image.js';
import { merged, within, without } from './regions.js';

export interface AddressRange {
  readonly start: Addr;
  /** Behind its last byte. */
  readonly end: Addr;
}

/** What is read at once: large, so that few requests are on their way. The last is given up if it cannot be read. */
const PIECES: readonly number[] = [1 << 26, 1 << 20, 1 << 14];
/** Bytes of a copy: more is not kept in memory. One region of more is what a program has reserved for later. */
export const mostCopied = 2 ** 30;

/** Heaps are copied in pieces of so many bytes, and what a word near an end points to may go on behind it. */
const GRANULE = 1 << 16;
const TAIL = 1 << 13;
/** Bits of an address within its page. */
const PAGE = 12n;

interface Piece {
  readonly start: Addr;
  readonly bytes: Uint8Array;
}

interface SnapshotOptions {
  /** Reads later on what was not copied: a program's constants, from its file. */
  readonly beyond?: MemoryReader;
  /** Memory that may hold heaps: of it is copied what the words in the regions point to, and those there in turn. */
  readonly heaps?: readonly Region[];
  readonly pointerBits?: number | undefined;
}

/** Copies memory. */
export async function takeSnapshot(
  memory: MemoryReader,
  regions: readonly Region[],
  { beyond = { read: async () => undefined }, heaps = [], pointerBits }: SnapshotOptions = {},
): Promise<Snapshot> {
  const copier = new Copier(memory);
  for (const { length } of regions) if (length > mostCopied) copier.unread += length;
  const own = merged(regions.filter(({ length }) => length <= mostCopied));
  for (const region of own) copier.unread += await copier.copy(region);
  if (heaps.length > 0) await copier.follow(own, heaps, pointerBits);
  return new Snapshot(copier, beyond, pointerBits);
}

class Copier {
  readonly pieces: Piece[] = [];
  searched = 0;
  unread = 0;
  readonly #memory: MemoryReader;

  constructor(memory: MemoryReader) {
    this.#memory = memory;
  }

  /** Returns how many bytes cannot be read. What is more than fits is missed in any case. */
  async copy({ start, length }: Region): Promise<number> {
    if (this.searched + length > mostCopied) {
      this.unread += length;
      return 0;
    }
    let unreadable = 0;
    for (let at = 0; at < length; ) {
      const [size, bytes] = await largestPiece(this.#memory, addOffset(start, at), length - at);
      if (bytes) this.pieces.push({ start: addOffset(start, at), bytes });
      if (bytes) this.searched += size;
      else unreadable += size;
      at += size;
    }
    return unreadable;
  }

  /** Copies of the heaps what words point to, beginning with those that were copied, until no word leads further. */
  async follow(own: readonly Region[], heaps: readonly Region[], pointerBits: number | undefined): Promise<void> {
    const granules = new Set<number>();
    const range = rangeOf(heaps);
    const ordered = merged(heaps);
    const heapAt = indexOf(ordered);
    const ownAt = indexOf(own);
    for (let done = 0; done < this.pieces.length; ) {
      const fresh: number[] = [];
      let last = Number.NaN;
      const want = (address: number): void => {
        const granule = Math.floor(address / GRANULE);
        // Most words point to where the one before did.
        if (granule === last) return;
        last = granule;
        if (granules.has(granule) || !heapAt(address) || ownAt(address)) return;
        granules.add(granule);
        fresh.push(granule);
      };
      for (; done < this.pieces.length; done++) {
        eachAddress(this.pieces[done] as Piece, range, pointerBits, (address) => {
          want(address);
          // What begins at a granule's end goes on in the next one.
          if (address % GRANULE > GRANULE - TAIL) want(address + TAIL);
        });
      }
      const found = fresh.map((granule) => ({ start: addr(BigInt(granule) * BigInt(GRANULE)), length: GRANULE }));
      // A word may look like an address and be none: what cannot be read there is not missed.
      for (const region of without(within(merged(found), ordered), own)) await this.copy(region);
    }
  }
}

/** As much as can be read at once; undefined bytes where the smallest piece cannot be read. */
async function largestPiece(
  memory: MemoryReader,
  start: Addr,
  most: number,
): Promise<readonly [size: number, bytes: Uint8Array | undefined]> {
  let size = 0;
  for (const limit of PIECES) {
    if (Math.min(limit, most) === size) continue;
    size = Math.min(limit, most);
    const bytes = await memory.read(start, size);
    if (bytes) return [size, bytes];
  }
  return [size, undefined];
}

/** Memory as it was at one moment: it can be searched, and read when the target runs again. */
export class Snapshot implements MemoryReader {
  /** Bytes that were copied. */
  readonly searched: number;
  /** Bytes that were asked for and could not be read, or were more than fit. */
  readonly unread: number;
  /** See `Architecture.pointerBits`: of words that {@link pointersInto} finds, and of what is read. */
  readonly pointerBits: number | undefined;
  readonly #pieces: readonly Piece[];
  readonly #beyond: MemoryReader;

  constructor(
    { pieces, searched, unread }: Pick<Copier, 'pieces' | 'searched' | 'unread'>,
    beyond: MemoryReader,
    pointerBits: number | undefined,
  ) {
    this.pointerBits = pointerBits;
    this.#pieces = pieces.toSorted((a, b) => (a.start < b.start ? -1 : 1));
    this.#beyond = beyond;
    this.searched = searched;
    this.unread = unread;
  }

  async read(address: Addr, length: number): Promise<Uint8Array | undefined> {
    const from = pointsTo(address, this.pointerBits);
    // A size may be that of a damaged file.
    if (length > this.searched || (length > 0 && !this.#pieceAt(from))) return this.#beyond.read(from, length);
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const at = addOffset(from, done);
      const piece = this.#pieceAt(at);
      if (piece === undefined) return undefined;
      const offset = Number(at - piece.start);
      const part = piece.bytes.subarray(offset, offset + length - done);
      bytes.set(part, done);
      done += part.length;
    }
    return bytes;
  }

  /** Where these words lie, 8-aligned, in all that was copied. */
  places(words: Iterable<bigint>): ReadonlyMap<bigint, readonly Addr[]> {
    const found = new Map<bigint, Addr[]>([...words].map((word) => [word, []]));
    if (found.size === 0) return found;
    const filter = new LowWords(found.keys());
    for (const { start, bytes } of this.#pieces) {
      const skip = Number((8n - (start % 8n)) % 8n);
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      filter.each(bytes, skip, (offset) => {
        found.get(view.getBigUint64(offset, true))?.push(addOffset(start, offset));
      });
    }
    return found;
  }

  /** Where words lie that point into these ranges, by the start of each. */
  pointersInto(ranges: readonly AddressRange[]): ReadonlyMap<Addr, readonly Addr[]> {
    const found = new Map<Addr, Addr[]>(ranges.map(({ start }) => [start, []]));
    // By pages: a word is looked at closely only if its page has a part of a range.
    const pages = new Map<number, AddressRange[]>();
    const { pointerBits } = this;
    const tag = tagBits(pointerBits);
    for (const range of ranges) {
      for (let page = Number(range.start >> PAGE); page <= Number((range.end - 1n) >> PAGE); page++) {
        addTo(pages, page, range);
      }
    }
    if (pages.size === 0) return found;
    for (const { start, bytes } of this.#pieces) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      for (let offset = Number((8n - (start % 8n)) % 8n); offset + 8 <= bytes.length; offset += 8) {
        const high = (view.getInt32(offset + 4, true) << tag) >> tag;
        const near = pages.get((high >>> 0) * 2 ** 20 + (view.getUint32(offset, true) >>> 12));
        if (near === undefined) continue;
        const word = pointsTo(addr(view.getBigUint64(offset, true)), pointerBits);
        const place = addOffset(start, offset);
        for (const range of near) if (word >= range.start && word < range.end) found.get(range.start)?.push(place);
      }
    }
    return found;
  }

  #pieceAt(address: Addr): Piece | undefined {
    const pieces = this.#pieces;
    const piece = pieces[firstWhere(pieces.length, (index) => (pieces[index] as Piece).start > address) - 1];
    return piece && address < piece.start + BigInt(piece.bytes.length) ? piece : undefined;
  }
}

/** Tells quickly that a word is none of those wanted: by the range and the hash of its low half. */
class LowWords {
  readonly #lowest: number;
  readonly #span: number;
  readonly #hashes = new Uint8Array(1 << 16);

  constructor(words: Iterable<bigint>) {
    const lows = Array.from(words, (word) => Number(word & 0xffff_ffffn));
    this.#lowest = lows.reduce((a, b) => Math.min(a, b));
    this.#span = lows.reduce((a, b) => Math.max(a, b)) - this.#lowest;
    for (const low of lows) this.#hashes[(low >>> 3) & 0xffff] = 1;
  }

  /** Calls for each 8-aligned word that may be one of them. */
  each(bytes: Uint8Array, skip: number, found: (offset: number) => void): void {
    const start = bytes.byteOffset + skip;
    // A copy is aligned where a view of it would not be.
    const aligned = start % 4 === 0 ? bytes : bytes.slice();
    const from = aligned === bytes ? start : skip;
    const count = (bytes.length - skip) >> 3;
    if (count <= 0) return;
    const halves = new Uint32Array(aligned.buffer, from, count * 2);
    const [lowest, span, hashes] = [this.#lowest, this.#span, this.#hashes];
    for (let i = 0; i < halves.length; i += 2) {
      const low = halves[i] as number;
      if (low - lowest <= span && low >= lowest && hashes[(low >>> 3) & 0xffff] === 1) found(skip + i * 4);
    }
  }
}

/** Whether an address lies in one of the regions. Numbers are exact to 2 KiB in the upper half: enough. */
function indexOf(ordered: readonly Region[]): (address: number) => boolean {
  const starts = Float64Array.from(ordered, ({ start }) => Number(start));
  return (address) => {
    const index = lastNotAbove(starts, starts.length, address);
    return index >= 0 && address < (starts[index] as number) + (ordered[index] as Region).length;
  };
}

/** Of the high half of a word. */
function tagBits(pointerBits = 64): number {
  return 64 - pointerBits;
}

interface NumberRange {
  readonly low: number;
  readonly high: number;
}

/** From the first byte of the regions to the last. */
function rangeOf(regions: readonly Region[]): NumberRange {
  const lows = regions.map(({ start }) => Number(start));
  const highs = regions.map(({ start, length }) => Number(start) + length);
  return { low: Math.min(...lows), high: Math.max(...highs) };
}

/** Every 8-aligned word of a piece that is no small number, and in a range, as a number. */
function eachAddress(
  { start, bytes }: Piece,
  { low: least, high: most }: NumberRange,
  pointerBits: number | undefined,
  found: (address: number) => void,
): void {
  const tag = tagBits(pointerBits);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let offset = Number((8n - (start % 8n)) % 8n); offset + 8 <= bytes.length; offset += 8) {
    const low = view.getUint32(offset, true);
    const high = ((view.getInt32(offset + 4, true) << tag) >> tag) >>> 0;
    if (high === 0 && low <= 0xffff) continue;
    const address = high * 2 ** 32 + low;
    if (address >= least && address <= most) found(address);
  }
}
