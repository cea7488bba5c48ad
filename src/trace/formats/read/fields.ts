/*
 * Protocol Buffers wire format (protobuf.dev, "Encoding"): the part that a reader of messages needs. Wire types 0
 * (VARINT), 1 (I64), 2 (LEN) and 5 (I32); groups are refused. Every length is checked against the message around it.
 */

import { fromHalves } from '../../../base/addr.js';

export const VARINT = 0;
export const I64 = 1;
export const LEN = 2;
const I32 = 5;

/** What is wrong with bytes, before it is known which file they are from. */
export class Damage extends Error {}

const TWO_32 = 2 ** 32;
/** Little-endian hosts, as Node's all are. */
const doubles = new Float64Array(1);
const halves = new Uint32Array(doubles.buffer);
const { latin1Slice } = Buffer.prototype;
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * A cursor over the fields of one message after the other, without an object a field:
 *
 *     for (fields.enter(from, to); fields.next(); ) {
 *       if (fields.number === 8 && fields.type === VARINT) time = fields.value();
 *     }
 *
 * A field that nobody asks for is skipped. After {@link next} the field's value is in `low` and `high` (VARINT, I64,
 * I32), or between `from` and `to` (LEN). Throws {@link Damage}.
 */
export class Fields {
  bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #at = 0;
  #end = 0;
  number = 0;
  type = 0;
  low = 0;
  high = 0;
  from = 0;
  to = 0;

  /** The bytes that offsets are of from now on. */
  use(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The next message: from an offset to another. */
  enter(from: number, to: number): void {
    this.#at = from;
    this.#end = to;
  }

  /** Reads the next field; false at the message's end. */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    const tag = this.#tag();
    this.number = tag >>> 3;
    this.type = tag & 7;
    if (this.number === 0) throw new Damage('a field has the number 0');
    switch (this.type) {
      case VARINT:
        this.#varint();
        break;
      case LEN:
        this.#varint();
        this.from = this.#at;
        this.to = this.#at + this.low;
        if (this.high !== 0 || this.to > this.#end) throw new Damage('a field is longer than its message');
        this.#at = this.to;
        break;
      case I64:
        this.#fixed(8);
        break;
      case I32:
        this.#fixed(4);
        break;
      default:
        throw new Damage(`a field has the wire type ${this.type}`);
    }
    return true;
  }

  /** A number of up to 53 bits. */
  value(): number {
    if (this.high >= 0x20_0000) throw new Damage('a number is above 2^53');
    return this.high * TWO_32 + this.low;
  }

  /** All 64 bits; a bigint only for what a number cannot hold. */
  key(): number | bigint {
    return this.high < 0x20_0000 ? this.high * TWO_32 + this.low : this.wide();
  }

  wide(): bigint {
    return fromHalves(this.low, this.high);
  }

  /** The same bits as a double. */
  double(): number {
    halves[0] = this.low;
    halves[1] = this.high;
    return doubles[0] as number;
  }

  /** What is between two offsets, as text. Bytes that are no UTF-8 are replaced. */
  text(from = this.from, to = this.to): string {
    const { bytes } = this;
    for (let at = from; at < to; at++) {
      if ((bytes[at] as number) > 0x7f) return utf8.decode(bytes.subarray(from, to));
    }
    // A short text is decoded three times as fast so.
    return latin1Slice.call(bytes, from, to);
  }

  /** A field's number and type: mostly one byte. */
  #tag(): number {
    const byte = this.bytes[this.#at] as number;
    if (byte < 0x80) {
      this.#at++;
      return byte;
    }
    this.#varint();
    if (this.high !== 0) throw new Damage('a field has no number');
    return this.low;
  }

  #fixed(size: 4 | 8): void {
    if (this.#at + size > this.#end) throw new Damage('a number is cut off');
    this.low = this.#view.getUint32(this.#at, true);
    this.high = size === 8 ? this.#view.getUint32(this.#at + 4, true) : 0;
    this.#at += size;
  }

  /** At most ten bytes; bits above 64 are dropped, as other readers do. */
  #varint(): void {
    const { bytes } = this;
    let at = this.#at;
    let byte = at < this.#end ? (bytes[at++] as number) : cutOff();
    if (byte < 0x80) {
      this.#at = at;
      this.low = byte;
      this.high = 0;
      return;
    }
    let low = byte & 0x7f;
    let high = 0;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      if (at >= this.#end || shift > 63) cutOff();
      byte = bytes[at++] as number;
      if (shift < 28) low |= (byte & 0x7f) << shift;
      else if (shift === 28) {
        low |= (byte & 0x0f) << 28;
        high = (byte & 0x7f) >>> 4;
      } else high |= (byte & 0x7f) << (shift - 32);
    }
    this.#at = at;
    this.low = low >>> 0;
    this.high = high >>> 0;
  }
}

function cutOff(): never {
  throw new Damage('a number has no end');
}
