/*
 * GDB manual, appendix "Remote Protocol", "Overview" and "Binary Data":
 *
 *   $ data # c c      packet; cc = sum of the raw bytes between $ and #, modulo 256
 *   % data # c c      notification, never acknowledged
 *   + -               acknowledge, ask again
 *   } x               x ^ 0x20 in the data            X * n      X, then X again n-29 times
 *
 * Refused: a packet beyond MAX_PACKET bytes before or after decoding, a run without a byte to repeat.
 */

import { messageOf, RsptraceError } from '../../base/errors.js';
import { hexDigit } from './hex.js';

/** The longest packet kept: twice the largest PacketSize that this client takes, for hex and escapes. */
export const MAX_PACKET = 2 * 1024 * 1024;

const DOLLAR = 0x24;
const HASH = 0x23;
const PERCENT = 0x25;
const STAR = 0x2a;
const PLUS = 0x2b;
const MINUS = 0x2d;
const ESCAPE = 0x7d;
const HEX_DIGITS = new TextEncoder().encode('0123456789abcdef');

/** From this many bytes on, four at once are worth while. */
const leastRun = 32;
/** How many words of four bytes are added before a sum of one of its bytes could overflow 16 bits. */
const mostWords = 256;

/**
 * The bytes from `at` on that are 0x30 to 0x6f, as hex digits are: they end nothing and mean themselves. Four at a
 * time.
 * @returns how many there are (a multiple of four) in the bits from 8 on, and the sum of them modulo 256 below
 */
function plainRun(view: DataView, at: number, end: number): number {
  const last = Math.min(end - 4, at + 4 * mostWords);
  let even = 0;
  let odd = 0;
  let next = at;
  for (; next <= last; next += 4) {
    const word = view.getInt32(next, true);
    // For the lowest other byte, one of the two has its highest bit set: the first if it is below 0x30 or from 0xb0
    // on, the second if it is 0x70 to 0xef.
    if ((((word - 0x3030_3030) | (word + 0x1010_1010)) & 0x8080_8080) !== 0) break;
    even += word & 0x00ff_00ff;
    odd += (word >>> 8) & 0x00ff_00ff;
  }
  const sum = even + (even >>> 16) + odd + (odd >>> 16);
  return ((next - at) << 8) | (sum & 0xff);
}

/** One output buffer for all packets of a write, reused. */
export class PacketWriter {
  #buffer = new Uint8Array(16 * 1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The bytes written since {@link clear}; a view, valid until the next change. */
  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  /** Gives the buffer away (a socket still holds it) and goes on with another. */
  release(): void {
    this.#buffer = new Uint8Array(this.#buffer.length);
    this.#length = 0;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#buffer[this.#length++] = value;
  }

  /** Frames one packet; characters of `data` are bytes (latin-1). */
  packet(data: string): void {
    this.#reserve(data.length * 2 + 4);
    const buffer = this.#buffer;
    let at = this.#length;
    let sum = 0;
    buffer[at++] = DOLLAR;
    for (let index = 0; index < data.length; index++) {
      let code = data.charCodeAt(index) & 0xff;
      if (code === DOLLAR || code === HASH || code === STAR || code === ESCAPE) {
        buffer[at++] = ESCAPE;
        sum += ESCAPE;
        code ^= 0x20;
      }
      buffer[at++] = code;
      sum += code;
    }
    buffer[at++] = HASH;
    buffer[at++] = HEX_DIGITS[(sum >> 4) & 15] as number;
    buffer[at++] = HEX_DIGITS[sum & 15] as number;
    this.#length = at;
  }

  /** Frames a letter and bytes in hex, without making text of them. */
  hexPacket(letter: number, data: Uint8Array): void {
    this.#reserve(data.length * 2 + 5);
    const buffer = this.#buffer;
    let at = this.#length;
    let sum = letter;
    buffer[at++] = DOLLAR;
    buffer[at++] = letter;
    for (let index = 0; index < data.length; index++) {
      const byte = data[index] as number;
      const high = HEX_DIGITS[byte >> 4] as number;
      const low = HEX_DIGITS[byte & 15] as number;
      buffer[at++] = high;
      buffer[at++] = low;
      sum += high + low;
    }
    buffer[at++] = HASH;
    buffer[at++] = HEX_DIGITS[(sum >> 4) & 15] as number;
    buffer[at++] = HEX_DIGITS[sum & 15] as number;
    this.#length = at;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#buffer.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#buffer.length * 2));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }
}

/** What a {@link PacketReader} finds. Ranges are valid during the call only: whoever keeps bytes copies them. */
export interface PacketSink {
  ack(): void;
  nak(): void;
  packet(bytes: Uint8Array, start: number, end: number): void;
  notification(bytes: Uint8Array, start: number, end: number): void;
  /** A packet whose sum is wrong; `sum` is the text after `#`. */
  badChecksum(sum: string): void;
  /** Bytes that belong to no packet, or to one that was cut off by the start of the next. */
  junk(bytes: Uint8Array, start: number, end: number): void;
}

/** Cuts a socket's data into packets. A packet that lies in one chunk is passed on without a copy. */
export class PacketReader {
  readonly #sink: PacketSink;
  /** A packet's start that waits for its rest. */
  #carry = new Uint8Array(8 * 1024);
  #carried = 0;
  /** Where the search for '#' goes on in a carried packet, and what it has found so far. */
  #scan = 0;
  #sum = 0;
  #special = false;
  #decoded = new Uint8Array(8 * 1024);
  #viewed: Uint8Array = this.#carry;
  #view: DataView = new DataView(this.#carry.buffer);

  constructor(sink: PacketSink) {
    this.#sink = sink;
  }

  /** Takes the next `length` bytes. Throws `RSP_PROTOCOL` on a packet without end or a run without start. */
  feed(chunk: Uint8Array, length = chunk.length): void {
    let bytes = chunk;
    let end = length;
    if (this.#carried > 0) {
      this.#append(chunk, length);
      bytes = this.#carry;
      end = this.#carried;
      this.#carried = 0;
    } else {
      this.#restart();
    }
    let at = 0;
    while (at < end) {
      const byte = bytes[at] as number;
      if (byte === DOLLAR || byte === PERCENT) {
        const next = this.#packet(bytes, at, end);
        if (next < 0) {
          this.#keep(bytes, at, end);
          return;
        }
        at = next;
      } else if (byte === PLUS) {
        at++;
        this.#sink.ack();
      } else if (byte === MINUS) {
        at++;
        this.#sink.nak();
      } else {
        const start = at;
        do at++;
        while (at < end && bytes[at] !== DOLLAR && bytes[at] !== PERCENT);
        this.#sink.junk(bytes, start, at);
      }
    }
  }

  #restart(): void {
    this.#scan = 1;
    this.#sum = 0;
    this.#special = false;
  }

  /** Reads the packet that starts at `start`; the offset after it, or -1 when its end has not come. */
  #packet(bytes: Uint8Array, start: number, end: number): number {
    const view = this.#viewOf(bytes);
    let at = start + this.#scan;
    let sum = this.#sum;
    let special = this.#special;
    let byte = 0;
    while (at < end) {
      if (end - at >= leastRun) {
        const run = plainRun(view, at, end);
        sum += run & 0xff;
        at += run >>> 8;
      }
      // The byte that ended the run, and some more, because a run with many other bytes should not begin again at
      // each.
      const stop = Math.min(end, at + leastRun);
      for (; at < stop; at++) {
        byte = bytes[at] as number;
        if (byte === HASH || byte === DOLLAR) break;
        if (byte === ESCAPE || byte === STAR) special = true;
        sum += byte;
      }
      if (at < stop) break;
    }
    if (at < end && byte === DOLLAR) {
      this.#restart();
      this.#sink.junk(bytes, start, at);
      return at;
    }
    if (at + 2 >= end) {
      this.#scan = at - start;
      this.#sum = sum;
      this.#special = special;
      return -1;
    }
    this.#restart();
    const high = hexDigit(bytes[at + 1]);
    const low = hexDigit(bytes[at + 2]);
    if (high < 0 || low < 0 || ((high << 4) | low) !== (sum & 0xff)) {
      this.#sink.badChecksum(String.fromCharCode(bytes[at + 1] as number, bytes[at + 2] as number));
    } else if (special) {
      const length = this.#decode(bytes, start + 1, at);
      this.#deliver(bytes[start] as number, this.#decoded, 0, length);
    } else {
      this.#deliver(bytes[start] as number, bytes, start + 1, at);
    }
    return at + 3;
  }

  /** Chunks come in the same memory again and again. */
  #viewOf(bytes: Uint8Array): DataView {
    if (this.#viewed !== bytes) {
      this.#viewed = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    }
    return this.#view;
  }

  #deliver(kind: number, bytes: Uint8Array, start: number, end: number): void {
    if (kind === DOLLAR) this.#sink.packet(bytes, start, end);
    else this.#sink.notification(bytes, start, end);
  }

  #decode(bytes: Uint8Array, start: number, end: number): number {
    let decoded = this.#decoded;
    let length = 0;
    for (let at = start; at < end; at++) {
      let byte = bytes[at] as number;
      let repeat = 1;
      if (byte === ESCAPE) {
        at++;
        if (at >= end) throw protocolError('a packet ends in the middle of an escape');
        byte = (bytes[at] as number) ^ 0x20;
      } else if (byte === STAR) {
        at++;
        repeat = at < end ? (bytes[at] as number) - 29 : 0;
        if (repeat < 3 || repeat > 97 || length === 0) throw protocolError('a packet holds an impossible run length');
        byte = decoded[length - 1] as number;
      }
      if (length + repeat > decoded.length) {
        decoded = grow(decoded, length, length + repeat);
        this.#decoded = decoded;
      }
      if (repeat === 1) decoded[length] = byte;
      else decoded.fill(byte, length, length + repeat);
      length += repeat;
    }
    return length;
  }

  #append(chunk: Uint8Array, length: number): void {
    const needed = this.#carried + length;
    if (needed > this.#carry.length) this.#carry = grow(this.#carry, this.#carried, needed);
    this.#carry.set(chunk.subarray(0, length), this.#carried);
    this.#carried = needed;
  }

  #keep(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start;
    if (length > MAX_PACKET) throw protocolError(`a packet is longer than ${MAX_PACKET} bytes`);
    if (bytes === this.#carry) this.#carry.copyWithin(0, start, end);
    else {
      this.#carried = 0;
      this.#append(bytes.subarray(start, end), length);
    }
    this.#carried = length;
  }
}

function grow(bytes: Uint8Array<ArrayBuffer>, used: number, needed: number): Uint8Array<ArrayBuffer> {
  if (needed > 2 * MAX_PACKET) throw protocolError(`a packet is longer than ${MAX_PACKET} bytes`);
  const grown = new Uint8Array(Math.max(needed, bytes.length * 2));
  grown.set(bytes.subarray(0, used));
  return grown;
}

/** The error for bytes that are not the protocol; `what` completes "The stub broke the protocol: ...". */
export function protocolError(what: string): RsptraceError {
  return new RsptraceError('RSP_PROTOCOL', `The stub broke the protocol: ${what}`, {
    hint: 'Record the packets with --log trace; if the stub is right, report the log as a bug',
  });
}

/** What reading a packet has thrown, as an error of the protocol. */
export function toProtocolError(thrown: unknown): RsptraceError {
  if (thrown instanceof RsptraceError) return thrown;
  return new RsptraceError('RSP_PROTOCOL', messageOf(thrown), { cause: thrown });
}
