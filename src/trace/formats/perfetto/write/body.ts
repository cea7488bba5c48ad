import { DEBUG_ANNOTATION, type EventType, TRACE_PACKET, TRACK_EVENT } from '../fields.js';
import { LEN, type ProtoBuffer, putFixed64, putVarint, putVarint64, VARINT, varintLength } from '../protobuf.js';

/** What goes with every packet: `trusted_packet_sequence_id: 1`. */
const SEQUENCE = Uint8Array.of(TRACE_PACKET.trustedPacketSequenceId << 3, 1);
/** The track of events that name none: the defaults of the sequence have it. */
export const DEFAULT_TRACK = 4;
/** Bytes of a packet before its {@link Tail} at most: tags, a length of 5 bytes, the time; and of its last word. */
export const BEFORE_TAIL = 24;
/** Bytes of a tail before its body, at most. */
export const BEFORE_BODY = 24;

/**
 * What a TrackEvent has besides its type, its track and its time. In whole words, because copying these takes a quarter
 * of the time. What is behind `length` does not count.
 */
export interface Body {
  readonly words: Int32Array;
  /** Bytes of it that count. */
  readonly length: number;
  /** Where it is given again and again: packets that were made with it, the last one of each hash of type and track. */
  readonly tails: (Asked | undefined)[] | undefined;
}
export const noBody: Body = { words: new Int32Array(0), length: 0, tails: [] };

/** All of a packet that is behind its time. */
interface Tail {
  readonly words: Int32Array;
  readonly length: number;
}

/** Making a tail costs as much as it saves in so many packets. Some tracks, of Futures, have but a few. */
const worthIt = 16;

interface Asked {
  type: EventType;
  track: number;
  /** Packets in a row that it would have done for. */
  times: number;
  tail: Tail | undefined;
}

export function bytesOf({ words, length }: Body): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, length);
}

/** The packet of an event with these fields alone, from behind its time; undefined where that is not worth it. */
export function tailOf(type: EventType, track: number, body: Body): Tail | undefined {
  const { tails } = body;
  if (tails === undefined) return undefined;
  // Tracks of roots are odd, those of harts and threads even.
  const slot = ((track & 1) << 3) | ((track >>> 1) & 7);
  const asked = tails[slot];
  if (asked === undefined) tails[slot] = { type, track, times: 1, tail: undefined };
  else if (asked.track !== track || asked.type !== type) {
    asked.type = type;
    asked.track = track;
    asked.times = 1;
    asked.tail = undefined;
  } else if (asked.tail !== undefined || ++asked.times === worthIt) {
    asked.tail ??= makeTail(type, track, body);
    return asked.tail;
  }
  return undefined;
}

function makeTail(type: EventType, track: number, body: Body): Tail {
  const bytes = new Uint8Array(BEFORE_BODY + body.length);
  const at = putTail(bytes, 0, type, track, headLength(track) + body.length);
  bytes.set(bytesOf(body), at);
  const length = at + body.length;
  return { words: inWords(bytes, length), length };
}

/** Bytes of an event before its body: its type, and its track if that is not the default one. */
export function headLength(track: number): number {
  return track === DEFAULT_TRACK ? 2 : 3 + varintLength(track);
}

/** What comes between a packet's time and the fields of its event's body. */
export function putTail(
  bytes: Uint8Array,
  offset: number,
  type: EventType,
  track: number,
  eventLength: number,
): number {
  bytes[offset] = SEQUENCE[0] as number;
  bytes[offset + 1] = SEQUENCE[1] as number;
  bytes[offset + 2] = (TRACE_PACKET.trackEvent << 3) | LEN;
  const at = putVarint(bytes, offset + 3, eventLength);
  bytes[at] = TRACK_EVENT.type << 3;
  bytes[at + 1] = type;
  if (track === DEFAULT_TRACK) return at + 2;
  bytes[at + 2] = TRACK_EVENT.trackUuid << 3;
  return putVarint(bytes, at + 3, track);
}

/** Copies so many bytes, and up to three behind them. Words are little-endian, as on all of Node's hosts. */
export function copyWords(words: Int32Array, length: number, to: DataView, offset: number): void {
  for (let i = 0, at = offset; 4 * i < length; i++, at += 4) to.setInt32(at, words[i] as number, true);
}

export function kept({ bytes, length }: ProtoBuffer): Body {
  return { words: inWords(bytes, length), length, tails: [] };
}

function inWords(bytes: Uint8Array, length: number): Int32Array {
  const words = new Int32Array(Math.ceil(length / 4));
  // Bodies are short, and views of their memory would cost more than they do.
  for (let i = 0; i < length; i++) words[i >> 2] = (words[i >> 2] as number) | ((bytes[i] as number) << ((i & 3) * 8));
  return words;
}

const utf8 = new TextEncoder();
/** Bytes that addresses and flows of one event take at most, with names that are spelt out. */
const SLACK = 256;

/**
 * What differs between events that have one {@link Body}: addresses, numbers of flows, values that may never come
 * again. What is put after {@link clear} takes the place of what was there before. `name`: an annotation's name, as the
 * field that gives it.
 */
export class Beside implements Body {
  words = new Int32Array(256);
  length = 0;
  readonly tails = undefined;
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
