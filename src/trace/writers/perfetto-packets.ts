/*
 * Perfetto trace files (github.com/google/perfetto, protos/perfetto/trace: trace.proto, trace_packet.proto,
 * track_event/{track_event,track_descriptor,debug_annotation,source_location}.proto, interned_data/interned_data.proto;
 * guide: docs/reference/synthetic-track-event.md). A file is `Trace`: packets (field 1) one after the other.
 * This part: TrackEvents on one sequence, with interned strings, that never drops its incremental state. No clock snapshot:
 * timestamps are on the default clock (BOOTTIME), which readers take as the trace's own time.
 */

import type { OutputFile } from '../output-file.js';
import { LEN, ProtoBuffer, putVarint, varintLength } from './protobuf.js';

const PACKET = 1;

const TRACE_PACKET = {
  timestamp: 8,
  trustedPacketSequenceId: 10,
  trackEvent: 11,
  internedData: 12,
  sequenceFlags: 13,
  trackDescriptor: 60,
  firstPacketOnSequence: 87,
};
const SEQ_INCREMENTAL_STATE_CLEARED = 1;
const SEQ_NEEDS_INCREMENTAL_STATE = 2;

const TRACK_EVENT = {
  categoryIids: 3,
  debugAnnotations: 4,
  type: 9,
  nameIid: 10,
  trackUuid: 11,
  name: 23,
  counterValue: 30,
  sourceLocation: 33,
  sourceLocationIid: 34,
  doubleCounterValue: 44,
};
/** TrackEvent.Type. */
export const EVENT = { sliceBegin: 1, sliceEnd: 2, instant: 3, counter: 4 } as const;
export type EventType = (typeof EVENT)[keyof typeof EVENT];

/** What goes with every packet but the first: `trusted_packet_sequence_id: 1, sequence_flags: 2`. */
const SEQUENCE = Uint8Array.of(
  TRACE_PACKET.trustedPacketSequenceId << 3,
  1,
  TRACE_PACKET.sequenceFlags << 3,
  SEQ_NEEDS_INCREMENTAL_STATE,
);
const littleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
/**
 * A packet's bytes besides its TrackEvent's body, at most: tags, lengths of up to 5 bytes, time, track and type, and by what its last word is too
 * long.
 */
const AROUND_BODY = 48;

/**
 * What a TrackEvent says besides its type, its track and its time. In whole words, zeros behind it, since copying these takes a quarter
 * of the time.
 */
export interface Body {
  readonly words: Int32Array;
  /** Bytes of it that count. */
  readonly length: number;
}
export const noBody: Body = { words: new Int32Array(0), length: 0 };

const INTERNED_DATA = {
  eventCategories: 1,
  eventNames: 2,
  debugAnnotationNames: 3,
  sourceLocations: 4,
  debugAnnotationStringValues: 29,
};
const SOURCE_LOCATION = { iid: 1, fileName: 2, lineNumber: 4 };
const DEBUG_ANNOTATION = { nameIid: 1, boolValue: 2, stringValue: 6, pointerValue: 7, name: 10, stringValueIid: 17 };

export const TRACK_DESCRIPTOR = {
  uuid: 1,
  name: 2,
  process: 3,
  parentUuid: 5,
  counter: 8,
  childOrdering: 11,
  siblingOrderRank: 12,
  description: 14,
};
export const CHILD_ORDERING = { chronological: 2, explicit: 3 };
export const PROCESS_DESCRIPTOR = { pid: 1, processName: 6, processLabels: 8 };

/** Names repeat, so a table stays small; a program that makes more than this many gets the rest written in place. */
const TABLE_LIMIT = 1 << 16;

/** The arguments of an event. */
export interface Annotations {
  /** A text that comes again and again: written once. */
  text(name: string, value: string): void;
  /** A text that may never come again. */
  value(name: string, value: string): void;
  pointer(name: string, value: bigint): void;
  bool(name: string, value: boolean): void;
}

/** A source location. */
export interface Place {
  readonly file: string | undefined;
  readonly line: number | undefined;
}

export interface EventName {
  readonly category: string;
  readonly name: string;
  readonly place?: Place | undefined;
}

/** One writer sequence of a Perfetto trace: each call appends one whole packet to the file. */
export class PerfettoSequence implements Annotations {
  readonly #out: OutputFile;
  readonly #packet = new ProtoBuffer();
  readonly #interned = new ProtoBuffer();
  readonly #annotations = new ProtoBuffer();
  readonly #categories = new Map<string, number>();
  readonly #names = new Map<string, number>();
  readonly #annotationNames = new Map<string, number>();
  readonly #values = new Map<string, number>();
  /** By file, then by line (-1: no line); iids count through all files. */
  readonly #places = new Map<string, Map<number, number>>();
  #placeCount = 0;
  #isFirst = true;

  constructor(out: OutputFile) {
    this.#out = out;
  }

  /** A packet that describes a track; `fill` writes the TrackDescriptor's fields. */
  descriptor(fill: (message: ProtoBuffer) => void): void {
    const mark = this.#open(undefined);
    const message = this.#packet.open(TRACE_PACKET.trackDescriptor);
    fill(this.#packet);
    this.#packet.close(message);
    this.#close(mark);
  }

  /** Forgets the annotations gathered so far; those that follow go into the next {@link body}. */
  annotate(): Annotations {
    this.#annotations.clear();
    return this;
  }

  /**
   * The annotations gathered since {@link annotate}, and a name. It may be given to {@link event} as often as one likes, the first time before
   * anything else is written.
   */
  body(name?: EventName): Body {
    const packet = this.#packet;
    packet.clear();
    packet.append(this.#annotations);
    if (name) this.#name(name);
    return kept(packet);
  }

  /** An event on a track, whose body is that of {@link body}, with fields of another behind it. */
  event(type: EventType, track: number, time: number, body: Body = noBody, more: Body = noBody): void {
    if (!(time >= 0)) throw new RangeError(`${time} is no time`);
    const out = this.#out;
    const length = body.length + more.length;
    const begin = this.#interned.length > 0 || this.#isFirst ? undefined : out.reserve(length + AROUND_BODY);
    if (begin === undefined) {
      this.#eventInParts(type, track, time, body, more);
      return;
    }
    const bytes = out.buffer;
    const eventLength = 3 + varintLength(track) + length;
    let at = begin;
    bytes[at++] = (PACKET << 3) | LEN;
    at = putVarint(bytes, at, 6 + varintLength(time) + varintLength(eventLength) + eventLength);
    bytes[at++] = TRACE_PACKET.timestamp << 3;
    at = putVarint(bytes, at, time);
    bytes[at] = SEQUENCE[0] as number;
    bytes[at + 1] = SEQUENCE[1] as number;
    bytes[at + 2] = SEQUENCE[2] as number;
    bytes[at + 3] = SEQUENCE[3] as number;
    bytes[at + 4] = (TRACE_PACKET.trackEvent << 3) | LEN;
    at = putVarint(bytes, at + 5, eventLength);
    bytes[at] = TRACK_EVENT.type << 3;
    bytes[at + 1] = type;
    bytes[at + 2] = TRACK_EVENT.trackUuid << 3;
    at = putVarint(bytes, at + 3, track);
    copyWords(body.words, out.view, at);
    at += body.length;
    copyWords(more.words, out.view, at);
    out.commit(at + more.length);
  }

  /** With interned data, or longer than the file's buffer. */
  #eventInParts(type: EventType, track: number, time: number, body: Body, more: Body): void {
    const mark = this.#open(time);
    const packet = this.#packet;
    const message = packet.open(TRACE_PACKET.trackEvent);
    packet.uint(TRACK_EVENT.type, type);
    packet.uint(TRACK_EVENT.trackUuid, track);
    packet.raw(bytesOf(body));
    packet.raw(bytesOf(more));
    packet.close(message);
    this.#close(mark);
  }

  /** The body of an event on a counter's track: what it shows from now on. */
  counterBody(value: number): Body {
    const packet = this.#packet;
    packet.clear();
    if (Number.isSafeInteger(value) && value >= 0) packet.uint(TRACK_EVENT.counterValue, value);
    else packet.double(TRACK_EVENT.doubleCounterValue, value);
    return kept(packet);
  }

  text(name: string, value: string): void {
    const mark = this.#annotation(name);
    const iid = this.#intern(this.#values, INTERNED_DATA.debugAnnotationStringValues, value);
    if (iid === 0) this.#annotations.text(DEBUG_ANNOTATION.stringValue, value);
    else this.#annotations.uint(DEBUG_ANNOTATION.stringValueIid, iid);
    this.#annotations.close(mark);
  }

  value(name: string, value: string): void {
    const mark = this.#annotation(name);
    this.#annotations.text(DEBUG_ANNOTATION.stringValue, value);
    this.#annotations.close(mark);
  }

  pointer(name: string, value: bigint): void {
    const mark = this.#annotation(name);
    this.#annotations.uint64(DEBUG_ANNOTATION.pointerValue, value);
    this.#annotations.close(mark);
  }

  bool(name: string, value: boolean): void {
    const mark = this.#annotation(name);
    this.#annotations.bool(DEBUG_ANNOTATION.boolValue, value);
    this.#annotations.close(mark);
  }

  #annotation(name: string): number {
    const mark = this.#annotations.open(TRACK_EVENT.debugAnnotations);
    const iid = this.#intern(this.#annotationNames, INTERNED_DATA.debugAnnotationNames, name);
    if (iid === 0) this.#annotations.text(DEBUG_ANNOTATION.name, name);
    else this.#annotations.uint(DEBUG_ANNOTATION.nameIid, iid);
    return mark;
  }

  #name({ category, name, place }: EventName): void {
    const packet = this.#packet;
    packet.uint(TRACK_EVENT.categoryIids, this.#intern(this.#categories, INTERNED_DATA.eventCategories, category));
    const iid = this.#intern(this.#names, INTERNED_DATA.eventNames, name);
    if (iid === 0) packet.text(TRACK_EVENT.name, name);
    else packet.uint(TRACK_EVENT.nameIid, iid);
    if (place?.file !== undefined) this.#place(place.file, place.line);
  }

  #open(time: number | undefined): number {
    const packet = this.#packet;
    packet.clear();
    const mark = packet.open(PACKET);
    if (time !== undefined) packet.uint(TRACE_PACKET.timestamp, time);
    packet.uint(TRACE_PACKET.trustedPacketSequenceId, 1);
    if (this.#isFirst) {
      packet.bool(TRACE_PACKET.firstPacketOnSequence, true);
      packet.uint(TRACE_PACKET.sequenceFlags, SEQ_INCREMENTAL_STATE_CLEARED);
      this.#isFirst = false;
    } else {
      packet.uint(TRACE_PACKET.sequenceFlags, SEQ_NEEDS_INCREMENTAL_STATE);
    }
    return mark;
  }

  /** What was interned for this packet goes with it: a reader takes a packet's interned data before its event. */
  #close(mark: number): void {
    const packet = this.#packet;
    if (this.#interned.length > 0) {
      const message = packet.open(TRACE_PACKET.internedData);
      packet.append(this.#interned);
      packet.close(message);
      this.#interned.clear();
    }
    packet.close(mark);
    this.#out.record(packet.bytes, packet.length);
  }

  /** The iid of a string (all these messages are `{iid = 1, name = 2}`), or 0 when the table is full. */
  #intern(table: Map<string, number>, field: number, text: string): number {
    const known = table.get(text);
    if (known !== undefined) return known;
    if (table.size >= TABLE_LIMIT) return 0;
    const iid = table.size + 1;
    table.set(text, iid);
    const mark = this.#interned.open(field);
    this.#interned.uint(1, iid);
    this.#interned.text(2, text);
    this.#interned.close(mark);
    return iid;
  }

  #place(file: string, line: number | undefined): void {
    let lines = this.#places.get(file);
    let iid = lines?.get(line ?? -1);
    if (iid === undefined && this.#placeCount < TABLE_LIMIT) {
      if (lines === undefined) {
        lines = new Map();
        this.#places.set(file, lines);
      }
      iid = ++this.#placeCount;
      lines.set(line ?? -1, iid);
      writePlace(this.#interned, INTERNED_DATA.sourceLocations, iid, file, line);
    }
    if (iid === undefined) writePlace(this.#packet, TRACK_EVENT.sourceLocation, undefined, file, line);
    else this.#packet.uint(TRACK_EVENT.sourceLocationIid, iid);
  }
}

export function bytesOf({ words, length }: Body): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, length);
}

function copyWords(words: Int32Array, to: DataView, offset: number): void {
  for (let i = 0, at = offset; i < words.length; i++, at += 4) to.setInt32(at, words[i] as number, littleEndian);
}

function writePlace(
  into: ProtoBuffer,
  field: number,
  iid: number | undefined,
  file: string,
  line: number | undefined,
): void {
  const mark = into.open(field);
  if (iid !== undefined) into.uint(SOURCE_LOCATION.iid, iid);
  into.text(SOURCE_LOCATION.fileName, file);
  if (line !== undefined) into.uint(SOURCE_LOCATION.lineNumber, line);
  into.close(mark);
}

function kept({ bytes, length }: ProtoBuffer): Body {
  const words = new Int32Array(Math.ceil(length / 4));
  new Uint8Array(words.buffer).set(bytes.subarray(0, length));
  return { words, length };
}
