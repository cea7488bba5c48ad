import { randomInt } from 'node:crypto';
import { controlBlock, type RingGeometry } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { type Piece, type RingLayout, type Write, wordWrite } from './ring.js';

/** A word of the control block. */
export interface ControlWord {
  readonly offset: number;
  readonly value: bigint;
}

/** A part of the order of claims. It owns its memory until all of it was read. */
export interface Segment {
  readonly base: Addr;
  /** Slots that were passed by because they are not committed yet. */
  holes: number;
}

/** Which memory belongs to which claims. The target has room up to the limit. */
export class RingSegments {
  /** The first claim. */
  readonly origin: number;
  /** Bytes of memory. */
  readonly capacity: number;
  readonly #geometry: RingGeometry;
  /** Bytes of one segment. */
  readonly #size: number;
  /** Entries in the target's table of segments. */
  readonly #table: number;
  /** The open segments, by number: `floor(claim / size)`. */
  readonly #open = new Map<number, Segment>();
  readonly #free: Addr[];
  #limit: number;

  constructor({ geometry, segments }: RingLayout) {
    this.#geometry = geometry;
    this.#size = 2 ** geometry.segmentShift;
    this.#table = 2 ** geometry.countShift;
    this.#free = [...segments].reverse();
    this.capacity = this.#size * segments.length;
    // The memory may hold the records of an earlier trace: none of their claims may ever equal one of ours.
    this.origin = this.#size * this.#table * randomInt(1, 2 ** 20);
    this.#limit = this.origin;
  }

  /** Claims from here on have no memory yet. */
  get limit(): number {
    return this.#limit;
  }

  /** The segment of a claim below the limit, while it is not read. */
  of(claim: number): Segment {
    return this.#open.get(Math.floor(claim / this.#size)) as Segment;
  }

  /** The memory of claims, up to `end` or to their segment's end. */
  piece(claim: number, end: number): Piece {
    const inside = claim % this.#size;
    return { address: addOffset(this.of(claim).base, inside), length: Math.min(end - claim, this.#size - inside) };
  }

  /** The control block before the first trampoline runs, with these words; written once. */
  control(words: readonly ControlWord[]): Write {
    const bytes = new Uint8Array(controlBlock.segments + 8 * this.#table);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(controlBlock.head, BigInt(this.origin), true);
    for (const { offset, value } of words) view.setBigUint64(offset, value, true);
    const writes = this.advance(this.origin, this.origin);
    for (const { address, bytes: word } of writes) bytes.set(word, Number(address - this.#geometry.control));
    return { address: this.#geometry.control, bytes };
  }

  /**
   * Gives the target room: memory of segments that were read becomes the next ones in the order of claims. `next`: the
   * first claim that was not read. `head`: the first one that nobody has made.
   * @returns the writes for the target, in order
   */
  advance(next: number, head: number): Write[] {
    const read = Math.floor(next / this.#size);
    for (const [number, { base, holes }] of this.#open) {
      if (number >= read) break;
      if (holes > 0) continue;
      this.#open.delete(number);
      this.#free.push(base);
    }
    const writes: Write[] = [];
    for (;;) {
      const number = this.#limit / this.#size;
      // The segment's entry in the table still belongs to another segment that is not fully claimed. A writer with a
      // claim has read its entry before.
      if ((number - this.#table + 1) * this.#size > head) break;
      const base = this.#free.pop();
      if (base === undefined) break;
      this.#open.set(number, { base, holes: 0 });
      this.#limit += this.#size;
      writes.push(this.#word(controlBlock.segments + 8 * (number % this.#table), base));
    }
    if (writes.length > 0) writes.push(this.#word(controlBlock.limit, BigInt(this.#limit)));
    return writes;
  }

  #word(offset: number, value: bigint): Write {
    return wordWrite(addOffset(this.#geometry.control, offset), value);
  }
}
