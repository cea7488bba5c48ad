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
import { ProtoBuffer } from '../protobuf.js';
import { Annotations } from './annotations.js';
import { Callstacks } from './callstacks.js';
import { Interned, type Place, putPlace } from './interned.js';

interface EventName {
  readonly category: string;
  readonly name: string;
  readonly place?: Place | undefined;
  /** Where it happened. */
  readonly stack?: readonly StackEntry[] | undefined;
}

/** What a TrackEvent has besides its type, its track and its time. */
export type Body = Uint8Array;

/** The track of events that name none: the defaults of the sequence have it. */
const DEFAULT_TRACK = 4;

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
  readonly #beside = new Annotations(this.#interned);
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

  /** The same for what stands beside the body of the next {@link event}. */
  beside(): Annotations {
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
    return packet.copy();
  }

  /** An event on a track, with the fields of a {@link body}, and others behind them. */
  event(type: EventType, track: number, time: number, body?: Body, beside?: Annotations): void {
    const mark = this.#open(time);
    const packet = this.#packet;
    const message = packet.open(TRACE_PACKET.trackEvent);
    packet.uint(TRACK_EVENT.type, type);
    if (track !== DEFAULT_TRACK) packet.uint(TRACK_EVENT.trackUuid, track);
    if (body) packet.raw(body);
    if (beside) packet.append(beside.fields);
    packet.close(message);
    this.#close(mark);
  }

  /** What stands in the next {@link event} of a counter's track: what it shows from now on. */
  counter(value: number): Annotations {
    const beside = this.beside();
    if (Number.isSafeInteger(value) && value >= 0) beside.fields.uint(TRACK_EVENT.counterValue, value);
    else beside.fields.double(TRACK_EVENT.doubleCounterValue, value);
    return beside;
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
