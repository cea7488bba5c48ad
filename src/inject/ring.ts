import { controlBlock, type RingGeometry } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { HeldRecords } from './held-records.js';
import { LateRecords, type OnRecords, type PassedBy, type SlotReader } from './late-records.js';
import { type ControlWord, RingSegments, type Segment } from './ring-segments.js';

/** Memory to read or to write in the target. */
export interface Piece {
  readonly address: Addr;
  readonly length: number;
}
export interface Write {
  readonly address: Addr;
  readonly bytes: Uint8Array;
}

export function inOrder<T extends { readonly address: Addr }>(all: readonly T[]): readonly T[] {
  return [...all].sort((a, b) => (a.address < b.address ? -1 : 1));
}

export interface RingLayout {
  readonly geometry: RingGeometry;
  /** Bytes of each segment. */
  readonly segments: readonly Addr[];
}

/**
 * How many segments are wanted. Enough, so that the one being read is a small part of the ring; few enough, so that a
 * small ring has slots.
 */
const wantedSegments = 16;
/** With fewer segments, one that is held back by an uncommitted slot would be too large a part of the ring. */
const leastSegments = 4;
/** log2 of the entries in the table of segments. */
const tableShift = 6;

/**
 * Divides memory into a ring's segments.
 * @returns undefined if there is no room for four segments of two slots
 */
export function layOutRing(control: Addr, wait: Addr, memory: Piece, slotShift: number): RingLayout | undefined {
  const segmentShift = Math.max(Math.floor(Math.log2(memory.length / wantedSegments)), slotShift + 1);
  const size = 2 ** segmentShift;
  const count = Math.floor(memory.length / size);
  if (!(count >= leastSegments)) return undefined;
  const segments = Array.from({ length: count }, (_, i) => addOffset(memory.address, i * size));
  return { geometry: { control, wait, slotShift, segmentShift, countShift: tableShift }, segments };
}

/** Writes a word. */
export function wordWrite(address: Addr, value: bigint): Write {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return { address, bytes };
}

/** Tells writers whether the ring is drained. If it is not, a writer that finds it full drops its event at once. */
export function unattended(control: Addr, isUnattended: boolean): Write {
  return wordWrite(addOffset(control, controlBlock.unattended), isUnattended ? 1n : 0n);
}

/** A slot for which the order was given up. */
interface Late extends PassedBy {
  readonly address: Addr;
  readonly segment: Segment;
}

/**
 * The most memory for records that are held back to keep their order. Beyond it the order is given up, not the
 * events.
 */
const mostHeldBytes = 64 << 20;

interface RingCounts {
  readonly records: number;
  /** Records that came after others with later claims. */
  readonly outOfOrder: number;
  /** How often no more could be claimed when HEAD was read: writers waited for room. */
  readonly full: number;
}

/**
 * The client's side of the ring that `arch/inject/probe-code.ts` draws. It says which bytes to read, what is
 * committed in them, and what to write to the target. It does no input and output itself. So the same code drains
 * over packets at a stop, and out of a shared file while the target runs.
 *
 *        reader.wanted(head) -> pieces -> (read them) -> reader.accept(bytes, onRecords) -> writes
 *        -> (write them, in order)
 *
 * Records come out in the order of their claims. A slot whose writer was interrupted holds back the slots behind it,
 * until half of the ring is claimed. Then the following records are read as well and wait here. Nothing is lost: the
 * segment keeps its memory until the slot is committed, and the ring goes on with the other segments. This may last
 * for ever, because the code that interrupts the writer may itself wait for room.
 */
export class RingReader {
  readonly #slot: number;
  readonly #segments: RingSegments;
  readonly #held = new HeldRecords();
  readonly #late: LateRecords<Late>;
  /** The first claim that was not read. */
  #next: number;
  /** The first claim that nobody had made when HEAD was last read. */
  #head: number;
  /** What {@link wanted} asked for last. */
  #pieces: Piece[] = [];
  /** The share of the ring that was claimed between its last two reads. */
  filled = 0;
  readonly #counts = { records: 0, outOfOrder: 0, full: 0 };

  constructor(layout: RingLayout, slots: SlotReader) {
    this.#slot = 2 ** layout.geometry.slotShift;
    this.#segments = new RingSegments(layout);
    this.#late = new LateRecords(slots, this.#slot);
    this.#next = this.#segments.origin;
    this.#head = this.#segments.origin;
  }

  get counts(): RingCounts {
    return this.#counts;
  }

  /** Bytes of memory. */
  get capacity(): number {
    return this.#segments.capacity;
  }

  /** Bytes of the memory that hold records, or have held some, from its start on. */
  get touched(): number {
    return Math.min(this.#head - this.#segments.origin, this.capacity);
  }

  /** The first claim that was not read. */
  get next(): number {
    return this.#next;
  }

  /** Claims were made that are not read yet. */
  get hasMore(): boolean {
    return this.#next < Math.min(this.#head, this.#segments.limit);
  }

  /** A slot was claimed, and was not committed when the ring was last read to its end. */
  get waits(): boolean {
    return this.hasMore || this.#held.first !== undefined || this.#late.passedBy.size > 0;
  }

  /** See {@link RingSegments.control}. */
  control(words: readonly ControlWord[]): Write {
    return this.#segments.control(words);
  }

  /**
   * What to read, for this value of HEAD (the bytes ever claimed). Of the new records, at most this many
   * bytes and no more than one segment beyond.
   */
  wanted(head: number, most = Number.POSITIVE_INFINITY): readonly Piece[] {
    const pieces: Piece[] = [];
    for (const { address } of this.#late.passedBy) pieces.push({ address, length: this.#slot });
    for (const { address, holes } of this.#held.all) {
      for (const hole of holes) pieces.push({ address: addOffset(address, hole), length: this.#slot });
    }
    this.filled = (head - this.#head) / this.capacity;
    this.#head = head;
    if (head >= this.#segments.limit) this.#counts.full++;
    const end = Math.min(head, this.#segments.limit);
    for (let claim = this.#next; claim < end && claim - this.#next < most; ) {
      const piece = this.#segments.piece(claim, end);
      pieces.push(piece);
      claim += piece.length;
    }
    this.#pieces = pieces;
    return pieces;
  }

  /**
   * Takes the bytes that the last {@link wanted} asked for, one array per piece. Emits records in the order of their
   * claims. `all`: also the records behind an uncommitted slot. Even then each hart's records are in order, except
   * for a handler that interrupted a writer.
   * @returns the writes for the target, in order
   */
  accept(read: readonly Uint8Array[], onRecords: OnRecords, all = false): Write[] {
    let next = 0;
    next = this.#acceptLate(read, next, onRecords);
    next = this.#acceptHoles(read, next);
    this.#flush(onRecords, false);
    for (; next < this.#pieces.length; next++) {
      const piece = this.#pieces[next] as Piece;
      if (!this.#scan(piece, read[next] as Uint8Array, onRecords, all)) break;
    }
    this.#pieces = [];
    if (all || this.#held.bytes > mostHeldBytes) this.#flush(onRecords, true);
    this.#late.settle(this.#held.first?.claim ?? this.#next, onRecords);
    return this.#segments.advance(this.#next, this.#head);
  }

  /**
   * Nothing will be written any more: emits all records that are held. Returns how many slots were claimed, and never
   * committed or never read.
   */
  finish(onRecords: OnRecords): number {
    this.#flush(onRecords, true);
    this.#late.settle(Number.POSITIVE_INFINITY, onRecords);
    const unread = Math.max(Math.min(this.#head, this.#segments.limit) - this.#next, 0);
    return this.#late.passedBy.size + unread / this.#slot;
  }

  #committed(view: DataView, offset: number, claim: number): boolean {
    return view.getUint32(offset, true) + view.getUint32(offset + 4, true) * 2 ** 32 === claim;
  }

  #emit(view: DataView, start: number, end: number, onRecords: OnRecords): void {
    if (start >= end) return;
    this.#counts.records += (end - start) / this.#slot;
    this.#late.handOn(view, start, end, onRecords);
  }

  /** Emits the committed slots of a piece. Returns false if it ends at a slot that is worth waiting for. */
  #scan(piece: Piece, bytes: Uint8Array, onRecords: OnRecords, all: boolean): boolean {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const start = this.#next;
    const whole = { claim: start, address: piece.address, segment: this.#segments.of(start), bytes };
    let held = this.#held.first && this.#held.add({ ...whole, done: 0 });
    for (let offset = 0; offset < bytes.length; offset += this.#slot) {
      const claim = start + offset;
      if (this.#committed(view, offset, claim)) continue;
      if (!held) this.#emit(view, 0, offset, onRecords);
      if (!all && this.#head - claim <= this.capacity / 2) {
        this.#next = claim;
        if (held) this.#held.cut(held, offset);
        return false;
      }
      held ??= this.#held.add({ ...whole, done: offset });
      held.holes.add(offset);
      held.segment.holes++;
    }
    if (!held) this.#emit(view, 0, bytes.length, onRecords);
    this.#next = start + bytes.length;
    return true;
  }

  #acceptLate(read: readonly Uint8Array[], first: number, onRecords: OnRecords): number {
    let next = first;
    for (const hole of [...this.#late.passedBy]) {
      const bytes = read[next++] as Uint8Array;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      if (!this.#committed(view, 0, hole.claim)) continue;
      this.#counts.outOfOrder++;
      this.#counts.records++;
      hole.segment.holes--;
      this.#late.write(hole, view, this.#head, onRecords);
    }
    return next;
  }

  #acceptHoles(read: readonly Uint8Array[], first: number): number {
    let next = first;
    for (const held of this.#held.all) {
      for (const hole of [...held.holes]) {
        const bytes = read[next++] as Uint8Array;
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
        if (!this.#committed(view, 0, held.claim + hole)) continue;
        held.bytes.set(bytes, hole);
        held.holes.delete(hole);
        held.segment.holes--;
      }
    }
    return next;
  }

  /** Emits what is held, up to the first uncommitted slot or, if order is given up, past all of them. */
  #flush(onRecords: OnRecords, pastHoles: boolean): void {
    for (let held = this.#held.first; held; held = this.#held.first) {
      for (; held.done < held.bytes.length; held.done += this.#slot) {
        if (held.holes.has(held.done)) {
          if (!pastHoles) return;
          const { claim, address, segment, done } = held;
          this.#late.passBy({ claim: claim + done, address: addOffset(address, done), segment, depths: new Map() });
        } else this.#emit(held.view, held.done, held.done + this.#slot, onRecords);
      }
      this.#held.shift();
    }
  }
}
