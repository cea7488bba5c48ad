import { type Addr, addOffset, addr } from '../base/addr.js';
import type { MemoryReader } from '../base/memory-reader.js';
import type { Region } from './memory-image.js';

/** Memory as it was at one moment: it can be searched, and read when the target runs again. */
export interface Snapshot extends MemoryReader {
  /** What was copied, in order, without overlaps. */
  readonly regions: readonly Region[];
  /** Bytes that were copied. */
  readonly searched: number;
  /** Bytes that were asked for and could not be read, or were more than fit. */
  readonly unread: number;
  /** Where these words lie, 8-aligned, in all that was copied. */
  places(words: Iterable<bigint>): ReadonlyMap<bigint, readonly Addr[]>;
  /** Where words lie that point into these ranges, by the start of each. */
  pointersInto(ranges: readonly AddressRange[]): ReadonlyMap<Addr, readonly Addr[]>;
}

export interface AddressRange {
  readonly start: Addr;
  /** Behind its last byte. */
  readonly end: Addr;
}

/** One read: large, so that few requests are on their way. */
const CHUNK = 1 << 20;
/** What is given up where a chunk cannot be read as a whole. */
const SMALL = 1 << 14;
/** A copy of more than this is not kept in memory. */
const LARGEST = 2 ** 30;

/** Bits of an address within its page. */
const PAGE = 12n;

interface Piece {
  readonly start: Addr;
  readonly bytes: Uint8Array;
}

/** Copies memory. What lies outside of it is read through `beyond` later on: a program's constants, from its file. */
export async function takeSnapshot(
  memory: MemoryReader,
  regions: readonly Region[],
  beyond: MemoryReader = { read: async () => undefined },
): Promise<Snapshot> {
  const pieces: Piece[] = [];
  let [searched, unread] = [0, 0];
  for (const { start, length } of merged(regions)) {
    if (searched + length > LARGEST) {
      unread += length;
      continue;
    }
    const bytes = new Uint8Array(length);
    // Runs of what could be read.
    let from = 0;
    const keep = (to: number): void => {
      if (to > from) pieces.push({ start: addOffset(start, from), bytes: bytes.subarray(from, to) });
    };
    for (let at = 0; at < length; ) {
      let size = Math.min(CHUNK, length - at);
      let got = await memory.read(addOffset(start, at), size);
      if (got === undefined && size > SMALL) {
        size = SMALL;
        got = await memory.read(addOffset(start, at), size);
      }
      if (got) {
        bytes.set(got, at);
        searched += size;
      } else {
        keep(at);
        from = at + size;
        unread += size;
      }
      at += size;
    }
    keep(length);
  }
  return new CopiedMemory(pieces, beyond, searched, unread);
}

class CopiedMemory implements Snapshot {
  readonly searched: number;
  readonly unread: number;
  readonly #pieces: readonly Piece[];
  readonly #beyond: MemoryReader;

  constructor(pieces: readonly Piece[], beyond: MemoryReader, searched: number, unread: number) {
    this.#pieces = pieces;
    this.#beyond = beyond;
    this.searched = searched;
    this.unread = unread;
  }

  get regions(): readonly Region[] {
    return this.#pieces.map(({ start, bytes }) => ({ start, length: bytes.length }));
  }

  async read(address: Addr, length: number): Promise<Uint8Array | undefined> {
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const at = addOffset(address, done);
      const piece = this.#pieceAt(at);
      if (piece === undefined) return done === 0 ? await this.#beyond.read(address, length) : undefined;
      const offset = Number(at - piece.start);
      const part = piece.bytes.subarray(offset, offset + length - done);
      bytes.set(part, done);
      done += part.length;
    }
    return bytes;
  }

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

  pointersInto(ranges: readonly AddressRange[]): ReadonlyMap<Addr, readonly Addr[]> {
    const found = new Map<Addr, Addr[]>(ranges.map(({ start }) => [start, []]));
    // By pages: a word is looked at closely only if its page has a part of a range.
    const pages = new Map<number, AddressRange[]>();
    for (const range of ranges) {
      for (let page = Number(range.start >> PAGE); page <= Number((range.end - 1n) >> PAGE); page++) {
        const known = pages.get(page);
        if (known) known.push(range);
        else pages.set(page, [range]);
      }
    }
    if (pages.size === 0) return found;
    for (const { start, bytes } of this.#pieces) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      for (let offset = Number((8n - (start % 8n)) % 8n); offset + 8 <= bytes.length; offset += 8) {
        const page = view.getUint32(offset + 4, true) * 2 ** 20 + (view.getUint32(offset, true) >>> 12);
        const near = pages.get(page);
        if (near === undefined) continue;
        const word = view.getBigUint64(offset, true);
        const place = addOffset(start, offset);
        for (const range of near) if (word >= range.start && word < range.end) found.get(range.start)?.push(place);
      }
    }
    return found;
  }

  #pieceAt(address: Addr): Piece | undefined {
    let [low, high] = [0, this.#pieces.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#pieces[middle] as Piece).start <= address) low = middle + 1;
      else high = middle;
    }
    const piece = this.#pieces[low - 1];
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

/** In order, what overlaps or adjoins joined. */
export function merged(regions: readonly Region[]): Region[] {
  const found: { start: Addr; length: number }[] = [];
  for (const { start, length } of regions.toSorted((a, b) => (a.start < b.start ? -1 : 1))) {
    if (length <= 0) continue;
    const last = found.at(-1);
    const gap = last === undefined ? 1n : start - (last.start + BigInt(last.length));
    if (last !== undefined && gap <= 0n) last.length = Math.max(last.length, Number(start - last.start) + length);
    else found.push({ start: addr(start), length });
  }
  return found;
}
