import type { Addr } from '../base/addr.js';
import type { Segment } from './ring-segments.js';

/** Records behind an uncommitted slot, in the order of their claims. */
interface Held {
  readonly claim: number;
  readonly address: Addr;
  readonly segment: Segment;
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Offsets in `bytes` of slots that are not committed yet. */
  readonly holes: Set<number>;
  /** The records before this offset were emitted. */
  done: number;
}

/** The pieces of the ring that are held back to keep the order of their records. */
export class HeldRecords {
  readonly #queue: Held[] = [];
  #bytes = 0;

  get all(): readonly Held[] {
    return this.#queue;
  }

  get first(): Held | undefined {
    return this.#queue[0];
  }

  /** Bytes of memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a copy of a piece that was read. */
  add(piece: Omit<Held, 'view' | 'holes'>): Held {
    const bytes = Uint8Array.from(piece.bytes);
    const held = { ...piece, bytes, view: new DataView(bytes.buffer), holes: new Set<number>() };
    this.#queue.push(held);
    this.#bytes += bytes.length;
    return held;
  }

  /** The rest of the last piece, behind so many bytes, will be read again. */
  cut(held: Held, length: number): void {
    this.#queue.pop();
    this.#bytes -= held.bytes.length;
    if (length === 0) return;
    const bytes = held.bytes.slice(0, length);
    this.#queue.push({ ...held, bytes, view: new DataView(bytes.buffer) });
    this.#bytes += length;
  }

  /** The first piece was emitted. */
  shift(): void {
    const held = this.#queue.shift();
    if (held) this.#bytes -= held.bytes.length;
  }
}
