import { visible } from '../../../text/index.js';

const utf8 = new TextEncoder();
const FIRST_SIZE = 4096;
/** What numbers and single characters may take without being asked for. */
const SLACK = 64;
/** Shorter pieces are copied faster byte by byte. */
const SHORT = 40;
/** Longer texts are encoded faster by the platform. */
const LONGEST_LOOP = 256;
const MILLION = 1_000_000;
const BILLION = 1_000_000_000;
const BLANK = 0x20;
const ZERO = 0x30;
const MINUS = 0x2d;
const POINT = 0x2e;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LAST_PLAIN = 0x7e;

/**
 * A record of text as bytes of UTF-8, composed where it goes to, or in a buffer of its own. Text that comes again and
 * again is encoded once, with {@link encoded}; numbers are written without a text between.
 */
export class TextBytes {
  #own = new Uint8Array(FIRST_SIZE);
  bytes: Uint8Array = this.#own;
  /** The offset behind it in {@link bytes}. */
  length = 0;
  #start = 0;
  #limit = FIRST_SIZE;

  /** The next record is composed here, from `at` on, as long as it ends before `limit`. */
  startIn(bytes: Uint8Array, at: number, limit: number): void {
    this.bytes = bytes;
    this.#start = at;
    this.length = at;
    this.#limit = limit;
  }

  /** The next record has a buffer of its own, from 0 on. */
  startAlone(): void {
    this.startIn(this.#own, 0, this.#own.length);
  }

  /** The record. */
  toString(): string {
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + this.#start, this.length - this.#start).toString();
  }

  /** Bytes as they are. */
  piece(piece: Uint8Array): void {
    const { length } = piece;
    if (this.length + length + SLACK > this.#limit) this.#grow(length);
    const { bytes, length: at } = this;
    if (length > SHORT) bytes.set(piece, at);
    else for (let i = 0; i < length; i++) bytes[at + i] = piece[i] as number;
    this.length = at + length;
  }

  /** Any text, as it is. */
  text(text: string): void {
    if (!this.#plain(text, 0, 0)) this.#encode(text);
  }

  /** Text from elsewhere, on one line: see `visible`. */
  visible(text: string): void {
    if (!this.#plain(text, 0, 0)) this.#encode(visible(text));
  }

  /**
   * Writes a text that needs nothing done to it: printable ASCII without these two characters. Otherwise it writes
   * nothing and returns false.
   */
  plain(text: string, without: number, nor: number): boolean {
    return this.#plain(text, without, nor);
  }

  /** A text as JSON, if it needs no escapes: otherwise nothing is written, and false returned. */
  plainJson(text: string): boolean {
    return this.#quoted(text, BACKSLASH);
  }

  /** The same in quotes, if there is no quote in it. */
  plainQuoted(text: string): boolean {
    return this.#quoted(text, QUOTE);
  }

  #quoted(text: string, without: number): boolean {
    this.byte(QUOTE);
    if (!this.#plain(text, QUOTE, without)) {
      this.length--;
      return false;
    }
    this.byte(QUOTE);
    return true;
  }

  /** One byte. */
  byte(byte: number): void {
    this.bytes[this.length++] = byte;
    if (this.length + SLACK > this.#limit) this.#grow(0);
  }

  blanks(count: number): void {
    if (this.length + count + SLACK > this.#limit) this.#grow(count);
    for (let i = 0; i < count; i++) this.bytes[this.length++] = BLANK;
  }

  /** An integer, in decimal. */
  number(value: number): void {
    if (this.length + SLACK > this.#limit) this.#grow(0);
    if (value >= 0 && value < BILLION) this.#digits(value, digitsOf(value));
    else if (value < 0) {
      this.bytes[this.length++] = MINUS;
      this.number(-value);
    } else {
      const high = Math.floor(value / BILLION);
      this.#digits(high, digitsOf(high));
      this.#digits(value - high * BILLION, 9);
    }
  }

  /** The same in so many characters at least, with zeros before it. `value`: at least 0. */
  padded(value: number, width: number): void {
    if (this.length + SLACK > this.#limit) this.#grow(0);
    if (value < BILLION) this.#digits(value, Math.max(width, digitsOf(value)));
    else this.number(value);
  }

  /** Nanoseconds as microseconds with three decimals, in so many characters at least. */
  micros(nanos: number, width = 0): void {
    const rest = nanos % 1000;
    this.right((nanos - rest) / 1000, width - 4);
    this.byte(POINT);
    this.padded(rest, 3);
  }

  /** Nanoseconds as milliseconds, without zeros at the end. */
  millis(nanos: number): void {
    const rest = nanos % MILLION;
    this.number((nanos - rest) / MILLION);
    if (rest === 0) return;
    this.byte(POINT);
    this.padded(rest, 6);
    while (this.bytes[this.length - 1] === ZERO) this.length--;
  }

  /** An integer with blanks before it, in so many characters at least. */
  right(value: number, width: number): void {
    this.blanks(Math.max(0, width - digitsOf(value)));
    this.number(value);
  }

  #digits(value: number, count: number): void {
    const { bytes } = this;
    const start = this.length;
    let left = value;
    for (let at = start + count - 1; at >= start; at--) {
      const tenth = Math.floor(left / 10);
      bytes[at] = ZERO + left - tenth * 10;
      left = tenth;
    }
    this.length = start + count;
  }

  #plain(text: string, without: number, nor: number): boolean {
    const { length } = text;
    if (length > LONGEST_LOOP) return false;
    if (this.length + length + SLACK > this.#limit) this.#grow(length);
    const { bytes, length: at } = this;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code < BLANK || code > LAST_PLAIN || code === without || code === nor) return false;
      bytes[at + i] = code;
    }
    this.length = at + length;
    return true;
  }

  #encode(text: string): void {
    const most = 3 * text.length;
    if (this.length + most + SLACK > this.#limit) this.#grow(most);
    this.length += utf8.encodeInto(text, this.bytes.subarray(this.length)).written;
  }

  /** Goes on in a buffer of its own. */
  #grow(more: number): void {
    const length = this.length - this.#start;
    const needed = length + more + SLACK;
    const own = this.#own.length >= needed && this.bytes !== this.#own ? this.#own : new Uint8Array(2 * needed);
    own.set(this.bytes.subarray(this.#start, this.length));
    this.#own = own;
    this.startIn(own, 0, own.length);
    this.length = length;
  }
}

/** A text as a piece for {@link TextBytes.piece}. */
export function encoded(text: string): Uint8Array {
  return utf8.encode(text);
}

/** Pieces by what they are of: each is made once. */
export class PiecesOf<K extends object> {
  readonly #made = new WeakMap<K, Uint8Array>();
  readonly #make: (what: K) => string;

  constructor(make: (what: K) => string) {
    this.#make = make;
  }

  of(what: K): Uint8Array {
    let piece = this.#made.get(what);
    if (piece === undefined) {
      piece = utf8.encode(this.#make(what));
      this.#made.set(what, piece);
    }
    return piece;
  }
}

/** Texts that are kept as bytes. */
const mostTexts = 1 << 12;

/** Pieces by a text that they have in them: each is made once, unless there are very many. */
export class PiecesOfText {
  readonly #made = new Map<string, Uint8Array>();
  readonly #make: (text: string) => string;

  constructor(make: (text: string) => string) {
    this.#make = make;
  }

  of(text: string): Uint8Array {
    let piece = this.#made.get(text);
    if (piece === undefined) {
      if (this.#made.size >= mostTexts) this.#made.clear();
      piece = utf8.encode(this.#make(text));
      this.#made.set(text, piece);
    }
    return piece;
  }
}

function digitsOf(value: number): number {
  let count = 1;
  for (let least = 10; value >= least; least *= 10) count++;
  return count;
}
