import { type Addr, addr } from '../base/addr.js';
import { type CodeAddress, toCode } from '../dwarf/index.js';

interface Chunk {
  readonly low: CodeAddress;
  readonly high: CodeAddress;
  readonly view: DataView;
}

export const PAGE = 4096;
/** More than any stack is deep: what a walk has read is all kept until it ends. */
const MAX_CHUNKS = 0x1_0000;

/**
 * Memory that has been read already, mostly of the stack: what a walk looks at. It never waits; a walk that wants something else says so, and
 * goes on when it has been added.
 */
export class StackWindow {
  readonly #chunks: Chunk[] = [];
  /** Pages that turned out to be unreadable. */
  readonly #holes = new Set<CodeAddress>();
  #last: Chunk | undefined;
  /** The address that {@link word} was last asked for in vain; undefined when it is known to be unreadable. */
  missing: CodeAddress | undefined;

  /** Adds bytes that were read at an address. */
  add(address: Addr, bytes: Uint8Array): void {
    const low = toCode(address);
    if (Number.isNaN(low) || bytes.length === 0 || this.#chunks.length >= MAX_CHUNKS) return;
    this.#last = { low, high: low + bytes.length, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) };
    this.#chunks.push(this.#last);
  }

  /** Nothing can be read in the page of an address. */
  addHole(address: CodeAddress): void {
    if (this.#holes.size < MAX_CHUNKS) this.#holes.add(pageOf(address));
  }

  /** Eight bytes, unsigned; undefined when they are not here, with {@link missing} set when they might be got. */
  word(address: CodeAddress): bigint | undefined {
    const chunk = this.#holding(address, 8);
    return chunk?.view.getBigUint64(address - chunk.low, true);
  }

  /** 1 to 8 bytes, unsigned. */
  bytes(address: CodeAddress, size: number): bigint | undefined {
    const chunk = this.#holding(address, size);
    if (chunk === undefined) return undefined;
    let value = 0n;
    for (let i = size - 1; i >= 0; i--) value = (value << 8n) | BigInt(chunk.view.getUint8(address - chunk.low + i));
    return value;
  }

  #holding(address: CodeAddress, size: number): Chunk | undefined {
    let chunk = this.#last;
    if (chunk === undefined || !(address >= chunk.low && address + size <= chunk.high)) {
      chunk = this.#chunks.findLast(({ low, high }) => address >= low && address + size <= high);
      if (chunk !== undefined) this.#last = chunk;
    }
    const lost =
      Number.isNaN(address) || this.#holes.has(pageOf(address)) || this.#holes.has(pageOf(address + size - 1));
    this.missing = chunk === undefined && !lost ? address : undefined;
    return chunk;
  }
}

export function pageOf(address: CodeAddress): CodeAddress {
  return Math.floor(address / PAGE) * PAGE;
}

/** The address of a code address, for a read. */
export function addressOf(code: CodeAddress): Addr {
  return addr(BigInt(code));
}
