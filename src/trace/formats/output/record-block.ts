/** What a record of text is made of: texts, whole numbers, and texts that come again and again as UTF-8. */
export type TextPart = string | number | Uint8Array;

const utf8 = new TextEncoder();

/** Longer pieces are copied faster by the platform. */
const SHORT = 40;
/** Longer packets are. */
const SHORT_RECORD = 1024;
/** Longer texts are encoded faster by the platform. */
const SHORT_TEXT = 64;
/** Bytes of a character of UTF-16 at most, and of a whole number. */
const WIDEST = 3;
const WIDEST_NUMBER = 20;
const BILLION = 1_000_000_000;
const ZERO = 0x30;
const MINUS = 0x2d;

/** Whole records on their way to a file, in memory of a fixed size. Text is composed where it goes to. */
export class RecordBlock {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Where each record ends. Kept when it is cleared, because growing it anew costs more. */
  readonly #ends: number[] = [];
  #count = 0;
  #length = 0;

  constructor(capacity: number) {
    const memory = new ArrayBuffer(capacity);
    this.bytes = new Uint8Array(memory);
    this.view = new DataView(memory);
  }

  /** Bytes of the records. */
  get length(): number {
    return this.#length;
  }

  hasRoom(bytes: number): boolean {
    return this.#length + bytes <= this.bytes.length;
  }

  /** A record that ends before this offset was written into {@link bytes}. */
  ended(end: number): void {
    this.#length = end;
    this.#ends[this.#count++] = end;
  }

  /** There is room for them. */
  addBytes(bytes: Uint8Array, length: number): void {
    copyBytes(bytes, length, this.bytes, this.#length);
    this.ended(this.#length + length);
  }

  /** False if there is no room for it. */
  addText(text: string | readonly TextPart[]): boolean {
    const end = typeof text === 'string' ? putPart(this.bytes, this.#length, text) : this.#putParts(text);
    if (end < 0) return false;
    this.ended(end);
    return true;
  }

  clear(): void {
    this.#length = 0;
    this.#count = 0;
  }

  /** The end of the first record that does not end before these bytes; of the last one if all do. */
  firstFrom(bytes: number): number {
    for (let i = 0; i < this.#count; i++) if ((this.#ends[i] as number) >= bytes) return this.#ends[i] as number;
    return this.#ends[this.#count - 1] ?? 0;
  }

  /** Where the last whole record among the first `bytes` ends. */
  wholeUpTo(bytes: number): number {
    return this.#ends.slice(0, this.#count).findLast((end) => end <= bytes) ?? 0;
  }

  #putParts(parts: readonly TextPart[]): number {
    const { bytes } = this;
    let at = this.#length;
    for (let i = 0; i < parts.length && at >= 0; i++) at = putPart(bytes, at, parts[i] as TextPart);
    return at;
  }
}

/** A text of parts as one. */
export function wholeText(text: string | readonly TextPart[]): string {
  if (typeof text === 'string') return text;
  return text.map((part) => (typeof part === 'object' ? Buffer.from(part).toString() : part)).join('');
}

/** Writes a part of a text at an offset. Returns the offset behind it, or -1 if there may not be room for it. */
function putPart(bytes: Uint8Array, at: number, part: TextPart): number {
  if (typeof part === 'string') return putText(bytes, at, part);
  if (typeof part === 'number') return at + WIDEST_NUMBER > bytes.length ? -1 : putNumber(bytes, at, part);
  const { length } = part;
  if (at + length > bytes.length) return -1;
  if (length > SHORT) bytes.set(part, at);
  else for (let i = 0; i < length; i++) bytes[at + i] = part[i] as number;
  return at + length;
}

function putText(bytes: Uint8Array, at: number, text: string): number {
  const { length } = text;
  if (at + WIDEST * length > bytes.length) return -1;
  if (length > SHORT_TEXT) return at + encode(bytes, at, text);
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return at + encode(bytes, at, text);
    bytes[at + i] = code;
  }
  return at + length;
}

function encode(bytes: Uint8Array, at: number, text: string): number {
  return utf8.encodeInto(text, bytes.subarray(at)).written;
}

function putNumber(bytes: Uint8Array, at: number, value: number): number {
  if (value < 0) {
    bytes[at] = MINUS;
    return putNumber(bytes, at + 1, -value);
  }
  if (value < BILLION) return putDigits(bytes, at, value, digitsOf(value));
  const high = Math.floor(value / BILLION);
  return putDigits(bytes, putDigits(bytes, at, high, digitsOf(high)), value - high * BILLION, 9);
}

function putDigits(bytes: Uint8Array, start: number, value: number, count: number): number {
  let left = value;
  for (let at = start + count - 1; at >= start; at--) {
    const tenth = Math.floor(left / 10);
    bytes[at] = ZERO + left - tenth * 10;
    left = tenth;
  }
  return start + count;
}

/** Of a whole number from 0 on. */
export function digitsOf(value: number): number {
  let count = 1;
  for (let least = 10; value >= least; least *= 10) count++;
  return count;
}

/** Copies the first `length` bytes of `from`. For the hundred bytes of a packet a loop beats `set(subarray())`. */
export function copyBytes(from: Uint8Array, length: number, to: Uint8Array, at: number): void {
  if (length > SHORT_RECORD) to.set(from.subarray(0, length), at);
  else for (let i = 0; i < length; i++) to[at + i] = from[i] as number;
}
