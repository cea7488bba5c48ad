/*
 * Perfetto trace files (github.com/google/perfetto, protos/perfetto/trace: trace.proto, trace_packet.proto,
 * track_event/{track_event,track_descriptor,debug_annotation,source_location}.proto, interned_data/interned_data.proto;
 * guide: docs/reference/synthetic-track-event.md). A file is `Trace`: packets (field 1) one after the other.
 * This part: TrackEvents on one sequence, with interned strings, that never drops its incremental state. No clock snapshot:
 * timestamps are on the default clock (BOOTTIME), which readers take as the trace's own time.
 */
import type { OutputFile } from '../output-file.js';
import { ProtoBuffer } from './protobuf.js';

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
  sourceLocation: 33,
  sourceLocationIid: 34,
};
const TYPE_SLICE_BEGIN = 1;
const TYPE_SLICE_END = 2;
const TYPE_INSTANT = 3;

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
  childOrdering: 11,
  siblingOrderRank: 12,
  description: 14,
};
export const CHILD_ORDERING = { chronological: 2, explicit: 3 };
export const PROCESS_DESCRIPTOR = { pid: 1, processName: 6, processLabels: 8 };

/** Names repeat, so a table stays small; a program that makes more than this many gets the rest written in place. */
const TABLE_LIMIT = 1 << 16;

/** The arguments of an event, built once and written to as many tracks as it is on. */
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

  /** Forgets the annotations gathered so far; those that follow go with each {@link event} until the next call. */
  annotate(): Annotations {
    this.#annotations.clear();
    return this;
  }

  /** The annotations gathered so far, for {@link annotateAgain}. */
  annotations(): Uint8Array {
    return this.#annotations.bytes.slice(0, this.#annotations.length);
  }

  /** Like {@link annotate}, beginning with those that {@link annotations} gave; what they name is interned since then. */
  annotateAgain(annotations: Uint8Array): Annotations {
    this.#annotations.clear();
    this.#annotations.raw(annotations);
    return this;
  }

  /** Starts a slice on a track. Like the two below it carries the annotations gathered since {@link annotate}. */
  sliceBegin(track: number, time: number, category: string, name: string, place: Place | undefined): void {
    const mark = this.#open(time);
    const message = this.#openEvent(TYPE_SLICE_BEGIN, track);
    this.#name(category, name, place);
    this.#closeEvent(mark, message);
  }

  /** Ends the innermost slice of a track. */
  sliceEnd(track: number, time: number): void {
    const mark = this.#open(time);
    const message = this.#openEvent(TYPE_SLICE_END, track);
    this.#closeEvent(mark, message);
  }

  instant(track: number, time: number, category: string, name: string, place: Place | undefined): void {
    const mark = this.#open(time);
    const message = this.#openEvent(TYPE_INSTANT, track);
    this.#name(category, name, place);
    this.#closeEvent(mark, message);
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

  #openEvent(type: number, track: number): number {
    const message = this.#packet.open(TRACE_PACKET.trackEvent);
    this.#packet.uint(TRACK_EVENT.type, type);
    this.#packet.uint(TRACK_EVENT.trackUuid, track);
    return message;
  }

  #closeEvent(mark: number, message: number): void {
    this.#packet.append(this.#annotations);
    this.#packet.close(message);
    this.#close(mark);
  }

  #name(category: string, name: string, place: Place | undefined): void {
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
