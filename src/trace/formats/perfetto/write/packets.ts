/*
 * Perfetto trace files (github.com/google/perfetto, protos/perfetto/trace: trace.proto, trace_packet.proto,
 * track_event/{track_event,track_descriptor,debug_annotation,source_location}.proto, interned_data/interned_data.proto;
 * guide: docs/reference/synthetic-track-event.md). A file is `Trace`: packets (field 1) one after the other. This part:
 * TrackEvents on one sequence, with interned strings, that never drops its incremental state.
 * Packets do not say that they need it, which would be two bytes each. Timestamps are differences on a clock of the
 * sequence (clock_snapshot.proto, `is_incremental`). Its zero is that of BOOTTIME, which readers take as the
 * trace's own time.
 */

import type { StackEntry } from '../../../events/events.js';
import type { OutputFile } from '../../output/output-file.js';
import {
  CLOCK_ID,
  CLOCK_SNAPSHOT,
  type EventType,
  PACKET,
  PACKET_DEFAULTS,
  SEQ_INCREMENTAL_STATE_CLEARED,
  SOURCE_LOCATION,
  TRACE_PACKET,
  TRACK_DESCRIPTOR,
  TRACK_EVENT,
} from '../fields.js';
import { LEN, ProtoBuffer, putVarint, varintLength } from '../protobuf.js';
import { Annotations, putName } from './annotations.js';
import { type Body, bytesOf, copyWords, DEFAULT_TRACK, kept, More, noBody } from './body.js';
import { Callstacks } from './callstacks.js';
import { Interned, type Place } from './interned.js';

/** The only sequence: every packet names it. */
const SEQUENCE = 1;
/** Bytes of a packet before an event's body at most (tags, two lengths of 5 bytes, the time), and of its last word. */
const BEFORE_BODY = 48;

/** A track: its members in the order in which they are written. */
export type TrackAbout = Parameters<typeof TRACK_DESCRIPTOR.put>[2];

interface EventName {
  readonly category: string;
  readonly name: string;
  readonly place?: Place | undefined;
  /** Where it happened. */
  readonly stack?: readonly StackEntry[] | undefined;
}

/** One writer sequence of a Perfetto trace: each call appends one whole packet to the file. */
export class PerfettoSequence {
  readonly #out: OutputFile;
  readonly #packet = new ProtoBuffer();
  readonly #interned = new Interned();
  readonly #annotations = new Annotations(this.#interned);
  readonly #more = new More();
  /** Names of annotations, by these. */
  readonly #nameFields = new Map<string, Uint8Array>();
  readonly #argumentFields = new Map<string, Uint8Array>();
  /** Their iids belong into the next packet. */
  readonly callstacks = new Callstacks(this.#interned.fresh);
  /** The time of the last event: the next one is written as its distance from it. */
  #time = 0;
  #isFirst = true;

  constructor(out: OutputFile) {
    this.#out = out;
  }

  descriptor(track: TrackAbout): void {
    this.packet(undefined, (packet) => TRACK_DESCRIPTOR.put(packet, TRACE_PACKET.trackDescriptor, track));
  }

  /** A packet of another kind; `fill` writes its fields. What these refer to is interned already. */
  packet(time: number | undefined, fill: (packet: ProtoBuffer) => void): void {
    const mark = this.#open(time);
    fill(this.#packet);
    this.#close(mark);
  }

  /** What is gathered here goes into the next {@link body}. */
  annotate(): Annotations {
    return this.#annotations;
  }

  /** What stands behind the body of the next {@link event}. */
  more(): More {
    return this.#more.clear();
  }

  /**
   * The annotations gathered since {@link annotate}, and a name. It may be given to {@link event} as often as one
   * likes, the first time before anything else is written.
   */
  body(name?: EventName): Body {
    const packet = this.#packet;
    packet.clear();
    packet.append(this.#annotations.fields);
    this.#annotations.fields.clear();
    if (name) this.#name(name);
    return kept(packet);
  }

  /**
   * An event on a track, with the fields of a {@link body}, and of another one behind them.
   */
  event(type: EventType, track: number, time: number, body: Body = noBody, more: Body = noBody): void {
    const passed = time - this.#time;
    const out = this.#out;
    const length = body.length + more.length;
    const isPlain = passed >= 0 && this.#interned.fresh.length === 0 && !this.#isFirst;
    const begin = isPlain ? out.reserve(BEFORE_BODY + length) : undefined;
    if (begin === undefined) {
      this.#eventInParts(type, track, time, body, more);
      return;
    }
    this.#time = time;
    const isDefault = track === DEFAULT_TRACK;
    const eventLength = (isDefault ? 2 : 3 + varintLength(track)) + length;
    const bytes = out.buffer;
    let at = begin;
    bytes[at++] = (PACKET << 3) | LEN;
    at = putVarint(bytes, at, 4 + varintLength(passed) + varintLength(eventLength) + eventLength);
    bytes[at++] = TRACE_PACKET.timestamp << 3;
    at = putVarint(bytes, at, passed);
    bytes[at++] = TRACE_PACKET.trustedPacketSequenceId << 3;
    bytes[at++] = SEQUENCE;
    bytes[at++] = (TRACE_PACKET.trackEvent << 3) | LEN;
    at = putVarint(bytes, at, eventLength);
    bytes[at++] = TRACK_EVENT.type << 3;
    bytes[at++] = type;
    if (!isDefault) {
      bytes[at++] = TRACK_EVENT.trackUuid << 3;
      at = putVarint(bytes, at, track);
    }
    copyWords(body.words, body.length, out.view, at);
    at += body.length;
    copyWords(more.words, more.length, out.view, at);
    out.commit(at + more.length);
  }

  /** With interned data, or longer than the file's buffer. */
  #eventInParts(type: EventType, track: number, time: number, body: Body, more: Body): void {
    const mark = this.#open(time);
    const packet = this.#packet;
    const message = packet.open(TRACE_PACKET.trackEvent);
    packet.uint(TRACK_EVENT.type, type);
    if (track !== DEFAULT_TRACK) packet.uint(TRACK_EVENT.trackUuid, track);
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

  /** The name of an annotation as the field that gives it, for {@link More}. It belongs into the next event. */
  nameField(name: string): Uint8Array {
    return this.#nameFields.get(name) ?? this.#newField(this.#nameFields, name, name);
  }

  /** The same of an argument of this name. */
  argumentField(name: string): Uint8Array {
    return this.#argumentFields.get(name) ?? this.#newField(this.#argumentFields, name, `arg_${name}`);
  }

  #newField(fields: Map<string, Uint8Array>, key: string, name: string): Uint8Array {
    const field = new ProtoBuffer(64);
    putName(field, name, this.#interned);
    const bytes = field.copy();
    fields.set(key, bytes);
    return bytes;
  }

  #name({ category, name, place, stack }: EventName): void {
    const packet = this.#packet;
    packet.uint(TRACK_EVENT.categoryIids, this.#interned.category(category));
    const iid = this.#interned.name(name);
    if (iid === 0) packet.text(TRACK_EVENT.name, name);
    else packet.uint(TRACK_EVENT.nameIid, iid);
    if (place?.file !== undefined) this.#place(place.file, place.line);
    if (stack !== undefined) packet.uint(TRACK_EVENT.callstackIid, this.callstacks.ofEntries(stack));
  }

  #place(file: string, line: number | undefined): void {
    const packet = this.#packet;
    const iid = this.#interned.place(file, line);
    if (iid > 0) {
      packet.uint(TRACK_EVENT.sourceLocationIid, iid);
      return;
    }
    SOURCE_LOCATION.put(packet, TRACK_EVENT.sourceLocation, { fileName: file, lineNumber: line });
  }

  #open(time: number | undefined): number {
    if (this.#isFirst) this.#begin();
    const packet = this.#packet;
    packet.clear();
    const mark = packet.open(PACKET);
    if (time !== undefined) this.#putTime(time);
    packet.uint(TRACE_PACKET.trustedPacketSequenceId, SEQUENCE);
    return mark;
  }

  #putTime(time: number): void {
    const packet = this.#packet;
    if (time >= this.#time) {
      packet.uint(TRACE_PACKET.timestamp, time - this.#time);
      this.#time = time;
    } else {
      // A clock of differences never goes back.
      packet.uint(TRACE_PACKET.timestamp, time);
      packet.uint(TRACE_PACKET.timestampClockId, CLOCK_ID.boottime);
    }
  }

  /** The first packet of the sequence. It has nothing else, because readers take no event from one with clocks. */
  #begin(): void {
    this.#isFirst = false;
    const packet = this.#packet;
    packet.clear();
    const mark = packet.open(PACKET);
    packet.uint(TRACE_PACKET.trustedPacketSequenceId, SEQUENCE);
    packet.bool(TRACE_PACKET.firstPacketOnSequence, true);
    packet.uint(TRACE_PACKET.sequenceFlags, SEQ_INCREMENTAL_STATE_CLEARED);
    PACKET_DEFAULTS.put(packet, TRACE_PACKET.tracePacketDefaults, {
      timestampClockId: CLOCK_ID.firstOfSequence,
      trackEventDefaults: { trackUuid: DEFAULT_TRACK },
    });
    const boottime = { clockId: CLOCK_ID.boottime, timestamp: 0 };
    const own = { clockId: CLOCK_ID.firstOfSequence, timestamp: 0, isIncremental: true };
    CLOCK_SNAPSHOT.put(packet, TRACE_PACKET.clockSnapshot, { clocks: [boottime, own] });
    packet.close(mark);
    this.#out.record(packet.bytes, packet.length);
  }

  /** What was interned for this packet goes with it: a reader takes a packet's interned data before its event. */
  #close(mark: number): void {
    const packet = this.#packet;
    const { fresh } = this.#interned;
    if (fresh.length > 0) {
      const message = packet.open(TRACE_PACKET.internedData);
      packet.append(fresh);
      packet.close(message);
      fresh.clear();
    }
    packet.close(mark);
    this.#out.record(packet.bytes, packet.length);
  }
}
