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
  CLOCK,
  CLOCK_ID,
  CLOCK_SNAPSHOT,
  type EventType,
  PACKET,
  PACKET_DEFAULTS,
  SEQ_INCREMENTAL_STATE_CLEARED,
  TRACE_PACKET,
  TRACK_DESCRIPTOR,
  TRACK_EVENT,
} from '../fields.js';
import { LEN, ProtoBuffer, putVarint, varintLength } from '../protobuf.js';
import { Annotations, putName } from './annotations.js';
import {
  BEFORE_BODY,
  BEFORE_TAIL,
  Beside,
  type Body,
  bytesOf,
  copyWords,
  DEFAULT_TRACK,
  headLength,
  kept,
  noBody,
  putTail,
  tailOf,
} from './body.js';
import { Callstacks } from './callstacks.js';
import { Interned, type Place, putPlace } from './interned.js';

interface EventName {
  readonly category: string;
  readonly name: string;
  readonly place?: Place | undefined;
  /** Where it happened. */
  readonly stack?: readonly StackEntry[] | undefined;
}

/** A track. */
export interface TrackAbout {
  readonly uuid: number;
  readonly parent?: number;
  readonly name?: string;
  /** Writes what makes it a process or a thread. */
  readonly fill?: (track: ProtoBuffer) => void;
  readonly isCounter?: boolean;
  readonly rank?: number;
  /** Of its children: see `CHILD_ORDERING`. */
  readonly ordering?: number;
  readonly description?: string | undefined;
}

/** One writer sequence of a Perfetto trace: each call appends one whole packet to the file. */
export class PerfettoSequence {
  readonly #out: OutputFile;
  readonly #packet = new ProtoBuffer();
  readonly #interned = new Interned();
  readonly #annotations = new Annotations(this.#interned);
  readonly #beside = new Beside();
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

  /** A packet that describes a track. */
  descriptor({ uuid, parent, name, fill, isCounter, rank, ordering, description }: TrackAbout): void {
    const mark = this.#open(undefined);
    const track = this.#packet;
    const message = track.open(TRACE_PACKET.trackDescriptor);
    track.uint(TRACK_DESCRIPTOR.uuid, uuid);
    if (parent !== undefined) track.uint(TRACK_DESCRIPTOR.parentUuid, parent);
    if (name !== undefined) track.text(TRACK_DESCRIPTOR.name, name);
    fill?.(track);
    if (isCounter) track.close(track.open(TRACK_DESCRIPTOR.counter));
    if (rank !== undefined) track.uint(TRACK_DESCRIPTOR.siblingOrderRank, rank);
    if (ordering !== undefined) track.uint(TRACK_DESCRIPTOR.childOrdering, ordering);
    if (description !== undefined) track.text(TRACK_DESCRIPTOR.description, description);
    track.close(message);
    this.#close(mark);
  }

  /** A packet of another kind; `fill` writes its fields. What these refer to is interned already. */
  packet(time: number, fill: (packet: ProtoBuffer) => void): void {
    const mark = this.#open(time);
    fill(this.#packet);
    this.#close(mark);
  }

  /** Forgets the annotations gathered so far; those that follow go into the next {@link body}. */
  annotate(): Annotations {
    return this.#annotations.clear();
  }

  /** What stands beside the body of the next {@link event}. */
  beside(): Beside {
    return this.#beside.clear();
  }

  /**
   * The annotations gathered since {@link annotate}, and a name. It may be given to {@link event} as often as one
   * likes, the first time before anything else is written.
   */
  body(name?: EventName): Body {
    const packet = this.#packet;
    packet.clear();
    packet.append(this.#annotations.fields);
    if (name) this.#name(name);
    return kept(packet);
  }

  /**
   * An event on a track, with the fields of a {@link body}, and of another one behind them. A body that is given again
   * without another is written faster.
   */
  event(type: EventType, track: number, time: number, body: Body = noBody, more: Body = noBody): void {
    const passed = time - this.#time;
    const out = this.#out;
    const length = body.length + more.length;
    const isPlain = passed >= 0 && this.#interned.fresh.length === 0 && !this.#isFirst;
    const begin = isPlain ? out.reserve(BEFORE_TAIL + BEFORE_BODY + length) : undefined;
    if (begin === undefined) {
      this.#eventInParts(type, track, time, body, more);
      return;
    }
    this.#time = time;
    const tail = more.length > 0 ? undefined : tailOf(type, track, body);
    const eventLength = headLength(track) + length;
    const tailLength = tail?.length ?? 3 + varintLength(eventLength) + eventLength;
    const bytes = out.buffer;
    let at = begin;
    bytes[at++] = (PACKET << 3) | LEN;
    at = putVarint(bytes, at, 1 + varintLength(passed) + tailLength);
    bytes[at++] = TRACE_PACKET.timestamp << 3;
    at = putVarint(bytes, at, passed);
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

  /** The name of an annotation as the field that gives it, for {@link Beside}. It belongs into the next event. */
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
    const mark = packet.open(TRACK_EVENT.sourceLocation);
    putPlace(packet, file, line);
    packet.close(mark);
  }

  #open(time: number | undefined): number {
    if (this.#isFirst) this.#begin();
    const packet = this.#packet;
    packet.clear();
    const mark = packet.open(PACKET);
    if (time !== undefined) this.#putTime(time);
    packet.uint(TRACE_PACKET.trustedPacketSequenceId, 1);
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
    packet.uint(TRACE_PACKET.trustedPacketSequenceId, 1);
    packet.bool(TRACE_PACKET.firstPacketOnSequence, true);
    packet.uint(TRACE_PACKET.sequenceFlags, SEQ_INCREMENTAL_STATE_CLEARED);
    const defaults = packet.open(TRACE_PACKET.tracePacketDefaults);
    packet.uint(PACKET_DEFAULTS.timestampClockId, CLOCK_ID.firstOfSequence);
    const events = packet.open(PACKET_DEFAULTS.trackEventDefaults);
    packet.uint(TRACK_EVENT.trackUuid, DEFAULT_TRACK);
    packet.close(events);
    packet.close(defaults);
    const clocks = packet.open(TRACE_PACKET.clockSnapshot);
    for (const id of [CLOCK_ID.boottime, CLOCK_ID.firstOfSequence]) {
      const clock = packet.open(CLOCK_SNAPSHOT.clocks);
      packet.uint(CLOCK.clockId, id);
      packet.uint(CLOCK.timestamp, 0);
      if (id !== CLOCK_ID.boottime) packet.bool(CLOCK.isIncremental, true);
      packet.close(clock);
    }
    packet.close(clocks);
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
