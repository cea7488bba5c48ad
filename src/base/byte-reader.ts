import Long from 'long';
import { RsptraceError } from './errors.js';

/**
 * The one cursor through which binary input is read. Every read is checked against the end: a read past it throws
 * `INPUT_DAMAGED` naming the section, the offset and what was wanted. Little-endian only: both architectures are.
 *
 * LEB128: DWARF 5, section 7.6.
 */
export class ByteReader {
  readonly bytes: Uint8Array;
  /** Names the input in errors: `.debug_info`, `target.xml`, ... */
  readonly section: string;
  readonly end: number;
  offset: number;
  readonly #view: DataView;

  constructor(bytes: Uint8Array, section: string, offset = 0, end = bytes.length) {
    this.bytes = bytes;
    this.section = section;
    this.offset = offset;
    this.end = end;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (!Number.isSafeInteger(offset) || offset < 0 || offset > end || end > bytes.length) {
      throw this.truncated('a range inside the section');
    }
  }

  get remaining(): number {
    return this.end - this.offset;
  }

  /** A reader of the same bytes from `offset` to `end` (both absolute in the section). */
  at(offset: number, end = this.end): ByteReader {
    return new ByteReader(this.bytes, this.section, offset, end);
  }

  truncated(wanted: string): RsptraceError {
    const where = `0x${this.offset.toString(16)}`;
    return new RsptraceError(
      'INPUT_DAMAGED',
      `${this.section} ends too early: wanted ${wanted} at offset ${where}, the end is 0x${this.end.toString(16)}`,
    );
  }

  #take(size: number, wanted: string): number {
    const at = this.offset;
    if (at + size > this.end) throw this.truncated(wanted);
    this.offset = at + size;
    return at;
  }

  u8(): number {
    const at = this.offset;
    if (at >= this.end) throw this.truncated('u8');
    this.offset = at + 1;
    return this.bytes[at] as number;
  }

  i8(): number {
    return (this.u8() << 24) >> 24;
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2, 'u16'), true);
  }

  u24(): number {
    const at = this.#take(3, 'u24');
    return this.#view.getUint16(at, true) | (this.#view.getUint8(at + 2) << 16);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4, 'u32'), true);
  }

  i32(): number {
    return this.#view.getInt32(this.#take(4, 'i32'), true);
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#take(8, 'u64'), true);
  }

  /** A 64-bit offset or size as a number; more than 2^53 is refused: no file is that large. */
  u64n(): number {
    const at = this.#take(8, 'u64');
    const high = this.#view.getUint32(at + 4, true);
    if (high >= 0x20_0000) {
      this.offset = at;
      throw new RsptraceError(
        'INPUT_DAMAGED',
        `${this.section} holds a size past 2^53 at offset 0x${at.toString(16)}: the file is damaged`,
      );
    }
    return high * 0x1_0000_0000 + this.#view.getUint32(at, true);
  }

  /**
   * Unsigned LEB128 as a number; more than 2^53 throws `INPUT_DAMAGED`. Use {@link uleb64} for values, this for sizes
   * and codes.
   */
  uleb(): number {
    const start = this.offset;
    let byte = this.u8();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let scale = 0x80;
    do {
      byte = this.u8();
      value += (byte & 0x7f) * scale;
      scale *= 0x80;
      if (value > Number.MAX_SAFE_INTEGER || (byte >= 0x80 && this.offset - start >= 10)) {
        this.offset = start;
        throw new RsptraceError(
          'INPUT_DAMAGED',
          `${this.section} holds a LEB128 number past 2^53 at offset 0x${start.toString(16)}`,
        );
      }
    } while (byte >= 0x80);
    return value;
  }

  /** Unsigned LEB128, wrapped to 64 bits. */
  uleb64(): bigint {
    return BigInt.asUintN(64, this.#leb(false).toBigInt());
  }

  /** Signed LEB128, wrapped to 64 bits. */
  sleb64(): bigint {
    return this.#leb(true).toBigInt();
  }

  /** Signed LEB128 as a number; beyond +-2^53 throws `INPUT_DAMAGED`. */
  sleb(): number {
    const start = this.offset;
    const first = this.u8();
    if (first < 0x80) return (first << 25) >> 25;
    this.offset = start;
    const value = this.sleb64();
    if (value > BigInt(Number.MAX_SAFE_INTEGER) || value < BigInt(Number.MIN_SAFE_INTEGER)) {
      this.offset = start;
      throw new RsptraceError(
        'INPUT_DAMAGED',
        `${this.section} holds a LEB128 number past 2^53 at offset 0x${start.toString(16)}`,
      );
    }
    return Number(value);
  }

  #leb(signed: boolean): Long {
    let low = 0;
    let high = 0;
    let shift = 0;
    let byte: number;
    do {
      byte = this.u8();
      const bits = byte & 0x7f;
      if (shift < 32) {
        low |= bits << shift;
        if (shift > 25) high |= bits >>> (32 - shift);
      } else if (shift < 64) {
        high |= bits << (shift - 32);
      }
      shift += 7;
    } while (byte >= 0x80);
    if (signed && shift < 64 && (byte & 0x40) !== 0) {
      if (shift < 32) {
        low |= -1 << shift;
        high = -1;
      } else {
        high |= -1 << (shift - 32);
      }
    }
    return Long.fromBits(low, high, !signed);
  }

  /** A view (no copy) of the next `length` bytes. */
  take(length: number): Uint8Array {
    if (!Number.isSafeInteger(length) || length < 0) throw this.truncated(`${length} bytes`);
    const at = this.#take(length, `${length} bytes`);
    return this.bytes.subarray(at, at + length);
  }

  skip(length: number): void {
    if (!Number.isSafeInteger(length) || length < 0) throw this.truncated(`${length} bytes`);
    this.#take(length, `${length} bytes`);
  }

  /** A zero-terminated UTF-8 string. */
  cstr(): string {
    const stop = this.bytes.indexOf(0, this.offset);
    if (stop < 0 || stop >= this.end) throw this.truncated('a terminated string');
    const text = utf8.decode(this.bytes.subarray(this.offset, stop));
    this.offset = stop + 1;
    return text;
  }
}

const utf8 = new TextDecoder('utf-8');
