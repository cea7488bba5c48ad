/*
 * Protocol Buffers wire format (protobuf.dev, "Encoding"): the part that a writer of messages needs. Wire types 0
 * (VARINT), 1 (I64, for doubles) and 2 (LEN) only; a field's tag is `number << 3 | wire type`, itself a varint. Written
 * front to back into one buffer that is used again for each message. Nothing is read here.
 */
import { highHalf, lowHalf } from '../../../base/addr.js';
import { copyBytes } from '../output/record-block.js';

/** Wire type of an integer. */
export const VARINT = 0;
/** Wire type of a double, and of a number of 64 bits. */
const FIXED64 = 1;
/** Wire type of what has a length: texts, messages. */
export const LEN = 2;
const TWO_28 = 0x1000_0000;

const utf8 = new TextEncoder();
/** An append-only protobuf message. {@link clear} starts the next one in the same memory. */
export class ProtoBuffer {
  #bytes: Uint8Array;
  #length = 0;

  constructor(capacity = 1024) {
    this.#bytes = new Uint8Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** The memory that holds the message in its first `length` bytes; valid until the next write. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  clear(): void {
    this.#length = 0;
  }

  /** The message, in memory of its own. */
  copy(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  /** An integer field: uint32, uint64, int64 (not negative), bool or enum; up to 2^53. */
  uint(field: number, value: number): void {
    this.#room(20);
    this.#varint((field << 3) | VARINT);
    this.#varint(value);
  }

  /** A uint64 field of all 64 bits. */
  uint64(field: number, value: bigint): void {
    this.#room(20);
    this.#varint((field << 3) | VARINT);
    this.#length = putVarint64(this.#bytes, this.#length, value);
  }

  double(field: number, value: number): void {
    this.#room(18);
    this.#varint((field << 3) | FIXED64);
    new DataView(this.#bytes.buffer, this.#bytes.byteOffset).setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  bool(field: number, value: boolean): void {
    this.uint(field, value ? 1 : 0);
  }

  /** A string (UTF-8) or bytes field. */
  text(field: number, value: string): void {
    const mark = this.open(field);
    this.#room(value.length * 3);
    this.#length += utf8.encodeInto(value, this.#bytes.subarray(mark)).written;
    this.close(mark);
  }

  /** Copies a finished message, or a run of whole fields, of another buffer into this one. */
  append(other: ProtoBuffer): void {
    this.#room(other.#length);
    copyBytes(other.#bytes, other.#length, this.#bytes, this.#length);
    this.#length += other.#length;
  }

  /** Copies whole fields that were written before. */
  raw(fields: Uint8Array): void {
    this.#room(fields.length);
    copyBytes(fields, fields.length, this.#bytes, this.#length);
    this.#length += fields.length;
  }

  /** Starts a nested message; what is written until {@link close} of the returned mark is its content. */
  open(field: number): number {
    this.#room(11);
    this.#varint((field << 3) | LEN);
    // One byte for the length, because most messages are shorter than 128 bytes; close() makes room for more.
    return ++this.#length;
  }

  close(mark: number): void {
    const size = this.#length - mark;
    if (size < 0x80) {
      this.#bytes[mark - 1] = size;
      return;
    }
    const more = size < 0x4000 ? 1 : size < 0x20_0000 ? 2 : size < TWO_28 ? 3 : 4;
    this.#room(more);
    this.#bytes.copyWithin(mark + more, mark, this.#length);
    this.#length = mark - 1;
    this.#varint(size);
    this.#length += size;
  }

  #varint(value: number): void {
    if (!(value >= 0)) throw new RangeError(`${value} is no unsigned integer`);
    this.#length = putVarint(this.#bytes, this.#length, value);
  }

  #room(more: number): void {
    const wanted = this.#length + more;
    if (wanted <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(wanted, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}

/** Writes an integer from 0 to 2^53 at an offset; returns the offset behind it. There is room for 8 bytes. */
export function putVarint(bytes: Uint8Array, offset: number, value: number): number {
  let at = offset;
  let rest = value;
  if (rest > 0x7fff_ffff) {
    // Bit operators see 32 bits: the low 28 make four bytes, what is left of 2^53 fits.
    rest = Math.floor(value / TWO_28);
    const low = value - rest * TWO_28;
    bytes[at++] = low | 0x80;
    bytes[at++] = (low >>> 7) | 0x80;
    bytes[at++] = (low >>> 14) | 0x80;
    bytes[at++] = (low >>> 21) | 0x80;
  }
  while (rest > 0x7f) {
    bytes[at++] = rest | 0x80;
    rest >>>= 7;
  }
  bytes[at++] = rest;
  return at;
}

/** The same for all 64 bits of an unsigned integer. There is room for 10 bytes. */
export function putVarint64(bytes: Uint8Array, offset: number, value: bigint): number {
  let at = offset;
  let low = lowHalf(value);
  for (let high = highHalf(value); high !== 0; high >>>= 7) {
    bytes[at++] = low | 0x80;
    low = ((low >>> 7) | (high << 25)) >>> 0;
  }
  return putVarint(bytes, at, low);
}

/** Writes a fixed64 field of an integer from 0 to 2^53 at an offset; returns the offset behind it. */
export function putFixed64(bytes: Uint8Array, offset: number, field: number, value: number): number {
  let at = putVarint(bytes, offset, (field << 3) | FIXED64);
  const high = Math.floor(value / 2 ** 32);
  for (let shift = 0; shift < 32; shift += 8) bytes[at++] = value >>> shift;
  for (let shift = 0; shift < 32; shift += 8) bytes[at++] = high >>> shift;
  return at;
}

/** How many bytes {@link putVarint} writes. */
export function varintLength(value: number): number {
  if (value > 0x7fff_ffff) return 4 + varintLength(Math.floor(value / TWO_28));
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < TWO_28 ? 4 : 5;
}
