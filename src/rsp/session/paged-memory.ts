import { type Addr, addOffset } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import { type Batch, readLimit, writeLimit } from './batch.js';

/** Memory of the target as one hart sees it. */
export interface TargetMemory extends MemoryReader {
  /** False when any of the bytes could not be written. */
  write(address: Addr, bytes: Uint8Array): Promise<boolean>;
}

const PAGE = 4096n;
/** Packets of a large transfer in one write: enough to hide the round trip, few enough to keep in memory. */
const WINDOW = 32;

/**
 * Memory of any length, page by page: no packet crosses the border of a page, because the next page may be unmapped.
 */
export class PagedMemory implements TargetMemory {
  readonly #packetSize: number;
  readonly #begin: () => Batch;
  readonly #end: (batch: Batch) => void;

  /** Every write begins with a batch of `begin`, and `end` has the last word in it. */
  constructor(packetSize: number, begin: () => Batch, end: (batch: Batch) => void = () => {}) {
    this.#packetSize = packetSize;
    this.#begin = begin;
    this.#end = end;
  }

  async read(address: Addr, length: number): Promise<Uint8Array | undefined> {
    if (!Number.isSafeInteger(length) || length < 0 || length > 2 ** 31) {
      throw new RsptraceError('RSP_BAD_REQUEST', `Memory of ${length} bytes cannot be read`);
    }
    const bytes = new Uint8Array(length);
    const limit = readLimit(this.#packetSize);
    for (let offset = 0; offset < length; ) {
      const batch = this.#begin();
      const parts: { offset: number; size: number; reply: { readonly value: Uint8Array | undefined } }[] = [];
      while (offset < length && parts.length < WINDOW) {
        const at = addOffset(address, offset);
        const size = Math.min(length - offset, limit, Number(PAGE - (at % PAGE)));
        parts.push({ offset, size, reply: batch.readMemory(at, size) });
        offset += size;
      }
      this.#end(batch);
      await batch.send();
      for (const part of parts) {
        const got = part.reply.value;
        if (got === undefined) return undefined;
        bytes.set(got, part.offset);
      }
    }
    return bytes;
  }

  async write(address: Addr, bytes: Uint8Array): Promise<boolean> {
    const limit = writeLimit(this.#packetSize);
    for (let offset = 0; offset < bytes.length; ) {
      const batch = this.#begin();
      const replies: { readonly value: boolean }[] = [];
      while (offset < bytes.length && replies.length < WINDOW) {
        const at = addOffset(address, offset);
        const size = Math.min(bytes.length - offset, limit, Number(PAGE - (at % PAGE)));
        replies.push(batch.writeMemory(at, bytes.subarray(offset, offset + size)));
        offset += size;
      }
      this.#end(batch);
      await batch.send();
      if (!replies.every((reply) => reply.value)) return false;
    }
    return true;
  }
}
