/*
 * Perfetto trace files (github.com/google/perfetto, protos/perfetto/trace: trace.proto, trace_packet.proto,
 * track_event/{track_event,track_descriptor,debug_annotation,source_location}.proto, interned_data/interned_data.proto;
 * guide: docs/reference/synthetic-track-event.md). A file is `Trace`: packets (field 1) one after the other.
 * This part: TrackEvents on one sequence, with interned strings, that never drops its incremental state. No clock snapshot:
 * timestamps are on the default clock (BOOTTIME), which readers take as the trace's own time.
 */

import type { OutputFile } from '../output-file.js';
import {
  BEFORE_BODY,
  BEFORE_TAIL,
  type Body,
  bytesOf,
  copyWords,
  kept,
  noBody,
  putTail,
  tailOf,
} from './perfetto-body.js';
import {
  DEBUG_ANNOTATION,
  type EventType,
  INTERNED_DATA,
  PACKET,
  SEQ_INCREMENTAL_STATE_CLEARED,
  SEQ_NEEDS_INCREMENTAL_STATE,
  SOURCE_LOCATION,
  TRACE_PACKET,
  TRACK_EVENT,
} from './perfetto-fields.js';
import { LEN, ProtoBuffer, putVarint, varintLength } from './protobuf.js';

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
  /** The time of the last event, and its field: several packets in a row have the same. */
  #time = -1;
  readonly #timeField = new Uint8Array(16);
  #timeLength = 0;
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

  /**
   * An event on a track, whose body is that of {@link body}, with fields of another behind it. Without another, it is written faster
   * where it is given again.
   */
  event(type: EventType, track: number, time: number, body: Body = noBody, more: Body = noBody): void {
    if (time !== this.#time) this.#setTime(time);
    const out = this.#out;
    const length = body.length + more.length;
    const begin =
      this.#interned.length > 0 || this.#isFirst ? undefined : out.reserve(BEFORE_TAIL + BEFORE_BODY + length);
    if (begin === undefined) {
      this.#eventInParts(type, track, time, body, more);
      return;
    }
    const tail = more.length > 0 ? undefined : tailOf(type, track, body);
    const eventLength = 3 + varintLength(track) + length;
    const tailLength = tail?.length ?? 5 + varintLength(eventLength) + eventLength;
    const bytes = out.buffer;
    let at = begin;
    bytes[at++] = (PACKET << 3) | LEN;
    at = putVarint(bytes, at, this.#timeLength + tailLength);
    for (let i = 0; i < this.#timeLength; i++) bytes[at++] = this.#timeField[i] as number;
    if (tail !== undefined) {
      copyWords(tail.words, tailLength, out.view, at);
      out.commit(at + tailLength);
      return;
    }
    at = putTail(bytes, at, type, track, eventLength);
    copyWords(body.words, body.length, out.view, at);
    at += body.length;
    copyWords(more.words, more.length, out.view, at);
    out.commit(at + more.length);
  }

  #setTime(time: number): void {
    if (!(time >= 0)) throw new RangeError(`${time} is no time`);
    this.#time = time;
    this.#timeField[0] = TRACE_PACKET.timestamp << 3;
    this.#timeLength = putVarint(this.#timeField, 1, time);
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

  /** The body of an event that a flow leads through: to it from the last one of the same number, and on to the next. */
  flowBody(flow: number): Body {
    const packet = this.#packet;
    packet.clear();
    packet.fixed64(TRACK_EVENT.flowIds, flow);
    return kept(packet);
  }

  /** The name of an annotation as the field that gives it, for {@link ValueNotes}; it belongs into the next event. */
  nameField(name: string): Uint8Array {
    const field = new ProtoBuffer(64);
    this.#nameField(field, name);
    return field.bytes.slice(0, field.length);
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
    this.#nameField(this.#annotations, name);
    return mark;
  }

  #nameField(into: ProtoBuffer, name: string): void {
    const iid = this.#intern(this.#annotationNames, INTERNED_DATA.debugAnnotationNames, name);
    if (iid === 0) into.text(DEBUG_ANNOTATION.name, name);
    else into.uint(DEBUG_ANNOTATION.nameIid, iid);
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
