import { type Addr, addr, distance } from '../../base/addr.js';
import { littleEndian } from '../../base/little-endian.js';

interface Chunk {
  readonly start: Addr;
  readonly bytes: Uint8Array;
  readonly view: DataView;
}

export const PAGE = 4096;
/** Larger than any stack: everything that a walk has read is kept until it ends. */
const MAX_CHUNKS = 0x1_0000;

/**
 * Memory that was read already, mostly of the stack, for a walk. The window never waits: a walk that needs other
 * memory says so, and goes on when that was added. A request is an address and an offset, so that their sum is not
 * computed for each.
 */
export class StackWindow {
  readonly #chunks: Chunk[] = [];
  /** Pages that turned out to be unreadable. */
  readonly #holes = new Set<bigint>();
  #last: Chunk | undefined;
  /** The address that {@link word} last failed to find; undefined if it is known to be unreadable. */
  missing: Addr | undefined;

  /** Adds bytes that were read at an address. */
  add(start: Addr, bytes: Uint8Array): void {
    if (bytes.length === 0 || this.#chunks.length >= MAX_CHUNKS) return;
    this.#last = { start, bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) };
    this.#chunks.push(this.#last);
  }

  /** Nothing can be read in the page of an address. */
  addHole(address: Addr): void {
    if (this.#holes.size < MAX_CHUNKS) this.#holes.add(pageOf(address));
  }

  /** Eight bytes, unsigned. Undefined if they are not here; then {@link missing} is set if they might be read. */
  word(base: bigint, offset = 0): bigint | undefined {
    const chunk = this.#holding(base, offset, 8);
    return chunk?.view.getBigUint64(distance(chunk.start, base) + offset, true);
  }

  /** 1 to 8 bytes, unsigned. */
  bytes(address: bigint, size: number): bigint | undefined {
    const chunk = this.#holding(address, 0, size);
    return chunk && littleEndian(chunk.bytes, distance(chunk.start, address), size);
  }

  #holding(base: bigint, offset: number, size: number): Chunk | undefined {
    let chunk = this.#last;
    if (chunk === undefined || !holds(chunk, base, offset, size)) {
      chunk = this.#chunks.findLast((each) => holds(each, base, offset, size));
      if (chunk !== undefined) this.#last = chunk;
    }
    this.missing = chunk === undefined ? this.#wanted(addr(base + BigInt(offset)), size) : undefined;
    return chunk;
  }

  #wanted(address: Addr, size: number): Addr | undefined {
    const isLost = this.#holes.has(pageOf(address)) || this.#holes.has(pageOf(address + BigInt(size - 1)));
    return isLost ? undefined : address;
  }
}

function holds({ start, view }: Chunk, base: bigint, offset: number, size: number): boolean {
  const at = distance(start, base) + offset;
  return at >= 0 && at + size <= view.byteLength;
}

export function pageOf(address: bigint): Addr {
  return addr(address & ~BigInt(PAGE - 1));
}
