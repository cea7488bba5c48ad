import { DEBUG_ANNOTATION, TRACK_EVENT } from '../fields.js';
import { LEN, type ProtoBuffer, putFixed64, putVarint, putVarint64, VARINT, varintLength } from '../protobuf.js';

/** The track of events that name none: the defaults of the sequence have it. */
export const DEFAULT_TRACK = 4;

/**
 * What a TrackEvent has besides its type, its track and its time. In whole words, because copying these takes a quarter
 * of the time. What is behind `length` does not count.
 */
export interface Body {
  readonly words: Int32Array;
  /** Bytes of it that count. */
  readonly length: number;
}
export const noBody: Body = { words: new Int32Array(0), length: 0 };

export function bytesOf({ words, length }: Body): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, length);
}

/** Copies so many bytes, and up to three behind them. Words are little-endian, as on all of Node's hosts. */
export function copyWords(words: Int32Array, length: number, to: DataView, offset: number): void {
  for (let i = 0, at = offset; 4 * i < length; i++, at += 4) to.setInt32(at, words[i] as number, true);
}

export function kept({ bytes, length }: ProtoBuffer): Body {
  const words = new Int32Array(Math.ceil(length / 4));
  // Bodies are short, and views of their memory would cost more than they do.
  for (let i = 0; i < length; i++) words[i >> 2] = (words[i >> 2] as number) | ((bytes[i] as number) << ((i & 3) * 8));
  return { words, length };
}

const utf8 = new TextEncoder();
/** Bytes that addresses and flows of one event take at most, with names that are spelt out. */
const SLACK = 256;

/**
 * What differs between events that have one {@link Body}: addresses, numbers of flows, values that may never come
 * again. What is put after {@link clear} takes the place of what was there before. `name`: an annotation's name, as the
 * field that gives it.
 */
export class More implements Body {
  words = new Int32Array(256);
  length = 0;
  #bytes = new Uint8Array(this.words.buffer);

  clear(): this {
    this.length = 0;
    return this;
  }

  pointer(name: Uint8Array, value: bigint): this {
    const bytes = this.#bytes;
    bytes[this.length] = (TRACK_EVENT.debugAnnotations << 3) | LEN;
    const begin = this.length + 2;
    let at = begin;
    for (let i = 0; i < name.length; i++) bytes[at++] = name[i] as number;
    bytes[at++] = (DEBUG_ANNOTATION.pointerValue << 3) | VARINT;
    at = putVarint64(bytes, at, value);
    bytes[begin - 1] = at - begin;
    this.length = at;
    return this;
  }

  /** A flow leads to the event from the last one of the same number, and on to the next. */
  flow(number: number): this {
    this.length = putFixed64(this.#bytes, this.length, TRACK_EVENT.flowIds, number);
    return this;
  }

  /** The flow of this number ends at the event. */
  endOfFlow(number: number): this {
    this.length = putFixed64(this.#bytes, this.length, TRACK_EVENT.terminatingFlowIds, number);
    return this;
  }

  value(name: Uint8Array, value: string): this {
    const more = name.length + 3 * value.length + SLACK;
    if (this.length + more > this.#bytes.length) this.#grow(more);
    const bytes = this.#bytes;
    let at = this.length;
    bytes[at++] = (TRACK_EVENT.debugAnnotations << 3) | LEN;
    const short = value.length + name.length + 3 < 0x80 ? this.#short(at, name, value) : 0;
    this.length = short > 0 ? short : this.#any(at, name, value);
    return this;
  }

  /** Writes a short ASCII text in one pass, as most are. Returns the end; 0 if it is not ASCII. */
  #short(from: number, name: Uint8Array, value: string): number {
    const bytes = this.#bytes;
    const { length } = value;
    let at = from;
    bytes[at++] = name.length + 2 + length;
    for (let i = 0; i < name.length; i++) bytes[at++] = name[i] as number;
    bytes[at++] = (DEBUG_ANNOTATION.stringValue << 3) | LEN;
    bytes[at++] = length;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code > 0x7f) return 0;
      bytes[at++] = code;
    }
    return at;
  }

  #any(from: number, name: Uint8Array, value: string): number {
    const bytes = this.#bytes;
    const length = Buffer.byteLength(value);
    let at = putVarint(bytes, from, name.length + 1 + varintLength(length) + length);
    for (let i = 0; i < name.length; i++) bytes[at++] = name[i] as number;
    bytes[at++] = (DEBUG_ANNOTATION.stringValue << 3) | LEN;
    at = putVarint(bytes, at, length);
    return at + utf8.encodeInto(value, bytes.subarray(at)).written;
  }

  #grow(more: number): void {
    const words = new Int32Array(this.words.length + more);
    words.set(this.words);
    this.words = words;
    this.#bytes = new Uint8Array(words.buffer);
  }
}
