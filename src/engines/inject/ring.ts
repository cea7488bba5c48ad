import { randomInt } from 'node:crypto';
import { controlBlock, headFlag, type RingGeometry } from '../../arch/index.js';
import { type Addr, addOffset } from '../../base/addr.js';
import { LateRecords, type OnRecords, type PassedBy, type SlotReader } from './late-records.js';

/** Memory to read or to write in the target. */
export interface Piece {
  readonly address: Addr;
  readonly length: number;
}
export interface Write {
  readonly address: Addr;
  readonly bytes: Uint8Array;
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

/** Tells writers whether the ring is drained. If it is not, a writer that finds it full drops its event at once. */
export function unattended(control: Addr, isUnattended: boolean): Write {
  const bytes = new Uint8Array(8);
  bytes[0] = Number(isUnattended);
  return { address: addOffset(control, controlBlock.unattended), bytes };
}

/** A part of the order of claims. It owns its memory until all of it was read. */
interface Segment {
  readonly base: Addr;
  /** Slots that were passed by because they are not committed yet. */
  holes: number;
}

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

/**
 * The client's side of the ring that `arch/inject/probe-code.ts` draws. It says which bytes to read, what is
 * committed in them, and what to write to the target. It does no input and output itself. So the same code drains
 * over packets at a stop, and out of a shared file while the target runs.
 *
 *        reader.wanted(head) -> pieces -> (read them) -> reader.accept(bytes, onRecords) -> writes -> (write them, in order)
 *
 * Records come out in the order of their claims. A slot whose writer was interrupted holds back the slots behind it,
 * until half of the ring is claimed. Then the following records are read as well and wait here. Nothing is lost: the
 * segment keeps its memory until the slot is committed, and the ring goes on with the other segments. This may last
 * for ever, because the code that interrupts the writer may itself wait for room.
 */
export class RingReader {
  readonly #geometry: RingGeometry;
  readonly #slot: number;
  readonly #segment: number;
  readonly #table: number;
  /** The open segments, by number: `floor(claim / segment)`. */
  readonly #segments = new Map<number, Segment>();
  readonly #free: Addr[];
  readonly #origin: number;
  /** Bytes of memory. */
  readonly capacity: number;
  #next: number;
  #limit: number;
  #queue: Held[] = [];
  #heldBytes = 0;
  readonly #late: LateRecords<Late>;
  #pieces: Piece[] = [];
  #head = 0;
  /** The share of the ring that was claimed between its last two reads. */
  filled = 0;
  records = 0;
  /** Records that came after others with later claims. */
  outOfOrder = 0;

  constructor(layout: RingLayout, slots: SlotReader) {
    this.#geometry = layout.geometry;
    this.#slot = 2 ** layout.geometry.slotShift;
    this.#late = new LateRecords(slots, this.#slot);
    this.#segment = 2 ** layout.geometry.segmentShift;
    this.#table = 2 ** layout.geometry.countShift;
    this.#free = [...layout.segments].reverse();
    this.capacity = this.#segment * layout.segments.length;
    // The memory may hold the records of an earlier trace: none of their claims may ever equal one of ours.
    this.#origin = this.#segment * this.#table * randomInt(1, 2 ** 20);
    this.#next = this.#origin;
    this.#head = this.#origin;
    this.#limit = this.#origin;
  }

  /** The control block before the first trampoline runs; written once. */
  control(spins: number, looks: number): Write {
    const bytes = new Uint8Array(controlBlock.segments + 8 * this.#table);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(controlBlock.head, BigInt(this.#origin), true);
    view.setBigUint64(controlBlock.spins, BigInt(spins), true);
    view.setBigUint64(controlBlock.looks, BigInt(looks), true);
    for (const { address, bytes: word } of this.#advance()) bytes.set(word, Number(address - this.#geometry.control));
    return { address: this.#geometry.control, bytes };
  }

  /**
   * What to read, for this value of HEAD (the bytes ever claimed, with flags). Of the new records, at most this many
   * bytes and no more than one segment beyond.
   */
  wanted(head: number, most = Number.POSITIVE_INFINITY): readonly Piece[] {
    const pieces: Piece[] = [];
    for (const { address } of this.#late.passedBy) pieces.push({ address, length: this.#slot });
    for (const { address, holes } of this.#queue) {
      for (const hole of holes) pieces.push({ address: addOffset(address, hole), length: this.#slot });
    }
    const claimed = head - (head % this.#slot);
    this.filled = (claimed - this.#head) / this.capacity;
    this.#head = claimed;
    const end = Math.min(claimed, this.#limit);
    for (let claim = this.#next; claim < end && claim - this.#next < most; ) {
      const inside = claim % this.#segment;
      const length = Math.min(end - claim, this.#segment - inside);
      pieces.push({ address: addOffset(this.#segmentOf(claim).base, inside), length });
      claim += length;
    }
    this.#pieces = pieces;
    return pieces;
  }

  /**
   * Moves the pending record, if any, to its slot, as the next writer would. The target is stopped.
   * @param head HEAD, with its flags
   * @returns the writes for the target, in order; none if the ring is full
   */
  flush(head: number, record: Uint8Array): Write[] {
    const claim = head - (head % this.#slot);
    if ((head & headFlag.pending) === 0 || claim >= this.#limit) return [];
    const bytes = Uint8Array.from(record);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(claim), true);
    const address = addOffset(this.#segmentOf(claim).base, claim % this.#segment);
    return [{ address, bytes }, this.#word(controlBlock.head, BigInt(claim + this.#slot))];
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
    if (all || this.#heldBytes > mostHeldBytes) this.#flush(onRecords, true);
    this.#late.settle(this.#queue[0]?.claim ?? this.#next, onRecords);
    return this.#advance();
  }

  /**
   * Nothing will be written any more: emits all records that are held. Returns how many slots were claimed and never
   * committed.
   */
  finish(onRecords: OnRecords): number {
    this.#flush(onRecords, true);
    this.#late.settle(Number.POSITIVE_INFINITY, onRecords);
    return this.#late.passedBy.size;
  }

  #segmentOf(claim: number): Segment {
    return this.#segments.get(Math.floor(claim / this.#segment)) as Segment;
  }

  #committed(view: DataView, offset: number, claim: number): boolean {
    return view.getUint32(offset, true) + view.getUint32(offset + 4, true) * 2 ** 32 === claim;
  }

  #emit(view: DataView, start: number, end: number, onRecords: OnRecords): void {
    if (start >= end) return;
    this.records += (end - start) / this.#slot;
    this.#late.handOn(view, start, end, onRecords);
  }

  /** Emits the committed slots of a piece. Returns false if it ends at a slot that is worth waiting for. */
  #scan(piece: Piece, bytes: Uint8Array, onRecords: OnRecords, all: boolean): boolean {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const start = this.#next;
    let held: Held | undefined = this.#queue.length > 0 ? this.#hold(piece, bytes, start, 0) : undefined;
    for (let offset = 0; offset < bytes.length; offset += this.#slot) {
      const claim = start + offset;
      if (this.#committed(view, offset, claim)) continue;
      if (!held) this.#emit(view, 0, offset, onRecords);
      if (!all && this.#head - claim <= this.capacity / 2) {
        this.#next = claim;
        if (held) this.#cut(held, offset);
        return false;
      }
      held ??= this.#hold(piece, bytes, start, offset);
      held.holes.add(offset);
      held.segment.holes++;
    }
    if (!held) this.#emit(view, 0, bytes.length, onRecords);
    this.#next = start + bytes.length;
    return true;
  }

  #hold(piece: Piece, read: Uint8Array, claim: number, done: number): Held {
    const bytes = Uint8Array.from(read);
    const view = new DataView(bytes.buffer);
    const { address } = piece;
    const held = { claim, address, segment: this.#segmentOf(claim), bytes, view, holes: new Set<number>(), done };
    this.#queue.push(held);
    this.#heldBytes += bytes.length;
    return held;
  }

  /** The rest of a held piece will be read again. */
  #cut(held: Held, length: number): void {
    this.#queue.pop();
    this.#heldBytes -= held.bytes.length;
    if (length === 0) return;
    const bytes = held.bytes.slice(0, length);
    this.#queue.push({ ...held, bytes, view: new DataView(bytes.buffer) });
    this.#heldBytes += length;
  }

  #acceptLate(read: readonly Uint8Array[], first: number, onRecords: OnRecords): number {
    let next = first;
    for (const hole of [...this.#late.passedBy]) {
      const bytes = read[next++] as Uint8Array;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      if (!this.#committed(view, 0, hole.claim)) continue;
      this.outOfOrder++;
      this.records++;
      hole.segment.holes--;
      this.#late.write(hole, view, this.#head, onRecords);
    }
    return next;
  }

  #acceptHoles(read: readonly Uint8Array[], first: number): number {
    let next = first;
    for (const held of this.#queue) {
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
    while (this.#queue.length > 0) {
      const held = this.#queue[0] as Held;
      for (; held.done < held.bytes.length; held.done += this.#slot) {
        if (held.holes.has(held.done)) {
          if (!pastHoles) return;
          const { claim, address, segment, done } = held;
          this.#late.passBy({ claim: claim + done, address: addOffset(address, done), segment, depths: new Map() });
        } else this.#emit(held.view, held.done, held.done + this.#slot, onRecords);
      }
      this.#queue.shift();
      this.#heldBytes -= held.bytes.length;
    }
  }

  /** Gives the target room: memory of segments that were read becomes the next ones in the order of claims. */
  #advance(): Write[] {
    const read = Math.floor(this.#next / this.#segment);
    for (const [number, { base, holes }] of this.#segments) {
      if (number >= read) break;
      if (holes > 0) continue;
      this.#segments.delete(number);
      this.#free.push(base);
    }
    const writes: Write[] = [];
    for (;;) {
      const number = this.#limit / this.#segment;
      // The segment's entry in the table still belongs to another segment that is not fully claimed. A writer with a
      // claim has read its entry before.
      if ((number - this.#table + 1) * this.#segment > this.#head) break;
      const base = this.#free.pop();
      if (base === undefined) break;
      this.#segments.set(number, { base, holes: 0 });
      this.#limit += this.#segment;
      writes.push(this.#word(controlBlock.segments + 8 * (number % this.#table), base));
    }
    if (writes.length > 0) writes.push(this.#word(controlBlock.limit, BigInt(this.#limit)));
    return writes;
  }

  #word(offset: number, value: bigint): Write {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, value, true);
    return { address: addOffset(this.#geometry.control, offset), bytes };
  }
}
