import { addr } from '../../../../base/addr.js';
import { madeOnce } from '../../../../base/made-once.js';
import type { ArgumentValue } from '../../../events/events.js';
import { Damage, Fields, I64, LEN, VARINT } from '../../read/fields.js';
import {
  CLOCK_ID,
  DEBUG_ANNOTATION,
  PACKET_DEFAULTS,
  PERF_SAMPLE,
  SEQ_INCREMENTAL_STATE_CLEARED,
  SOURCE_LOCATION,
  TRACE_PACKET,
  TRACK_EVENT,
} from '../fields.js';
import { readClocks, readDescriptor, type TrackDescriptor } from './descriptors.js';
import { type NoteName, noteName, placeOf, Sequence } from './sequence.js';
import { Current, type NoteValue, noArguments, type PerfSample, type TrackEvent, valueText } from './track-event.js';

export interface TrackEventTaker {
  sample(sample: PerfSample): void;
  track(descriptor: TrackDescriptor): void;
  event(event: TrackEvent): void;
}

/** Packets decoded: TrackEvents and what belongs to them. Of other packets it is only known how many there are. */
export class TrackEvents {
  readonly #taker: TrackEventTaker;
  readonly #packet = new Fields();
  readonly #message = new Fields();
  readonly #entry = new Fields();
  readonly #sequences = new Map<number, Sequence>();
  readonly #event = new Current();
  /** Packets that have nothing of tracks, or times of a clock of their own. */
  others = 0;
  #head = {
    time: 0,
    hasTime: false,
    clock: 0,
    sequence: 0,
    flags: 0,
    event: 0,
    eventEnd: 0,
    track: 0,
    trackEnd: 0,
    sample: 0,
    sampleEnd: 0,
  };

  constructor(taker: TrackEventTaker) {
    this.#taker = taker;
  }

  /** Takes a packet. Throws `Damage`. */
  packet(bytes: Uint8Array, from: number, to: number): void {
    const packet = this.#packet;
    if (packet.bytes !== bytes) {
      packet.use(bytes);
      this.#message.use(bytes);
      this.#entry.use(bytes);
    }
    const interned = this.#readHead(from, to);
    const head = this.#head;
    const sequence = this.#sequenceOf(head.sequence);
    if ((head.flags & SEQ_INCREMENTAL_STATE_CLEARED) !== 0) sequence.clear();
    if (interned) this.#readInterned(sequence, from, to);
    if (head.trackEnd > 0) {
      this.#taker.track(readDescriptor(this.#message, head.track, head.trackEnd));
    }
    const id = head.clock === 0 ? sequence.clock : head.clock;
    const clock = sequence.clocks.get(id);
    const isKnown = clock !== undefined || id < CLOCK_ID.firstOfSequence;
    if (clock !== undefined) {
      if (head.hasTime) clock.time += head.time * clock.unit;
      if (!Number.isSafeInteger(clock.time)) throw new Damage('a time is above 2^53');
      head.time = clock.time;
    }
    if (head.sampleEnd > 0) this.#sample(sequence, head.sample, head.sampleEnd);
    else if (head.eventEnd === 0) {
      if (head.trackEnd === 0 && !interned) this.others++;
    } else if (!isKnown) this.others++;
    else {
      this.#event.clear();
      this.#trackEvent(sequence, head.event, head.eventEnd);
    }
  }

  /** The fields of the packet itself. Returns whether it has interned data, or defaults. */
  #readHead(from: number, to: number): boolean {
    const packet = this.#packet;
    const head = this.#head;
    head.hasTime = false;
    head.clock = 0;
    head.sequence = 0;
    head.flags = 0;
    head.eventEnd = 0;
    head.trackEnd = 0;
    head.sampleEnd = 0;
    let interned = false;
    packet.enter(from, to);
    while (packet.next()) {
      if (packet.type === VARINT) {
        if (packet.number === TRACE_PACKET.timestamp) {
          head.time = packet.value();
          head.hasTime = true;
        } else if (packet.number === TRACE_PACKET.trustedPacketSequenceId) head.sequence = packet.low;
        else if (packet.number === TRACE_PACKET.sequenceFlags) head.flags = packet.low;
        else if (packet.number === TRACE_PACKET.timestampClockId) head.clock = packet.low;
      } else if (packet.type === LEN) {
        if (packet.number === TRACE_PACKET.trackEvent) {
          head.event = packet.from;
          head.eventEnd = packet.to;
        } else if (packet.number === TRACE_PACKET.trackDescriptor) {
          head.track = packet.from;
          head.trackEnd = packet.to;
        } else if (packet.number === TRACE_PACKET.perfSample) {
          head.sample = packet.from;
          head.sampleEnd = packet.to;
        } else if (
          packet.number === TRACE_PACKET.internedData ||
          packet.number === TRACE_PACKET.tracePacketDefaults ||
          packet.number === TRACE_PACKET.clockSnapshot
        ) {
          interned = true;
        }
      }
    }
    return interned;
  }

  #sequenceOf(id: number): Sequence {
    return madeOnce(this.#sequences, id, () => new Sequence());
  }

  #readInterned(sequence: Sequence, from: number, to: number): void {
    const packet = this.#packet;
    packet.enter(from, to);
    while (packet.next()) {
      if (packet.type !== LEN) continue;
      if (packet.number === TRACE_PACKET.internedData) {
        this.#message.enter(packet.from, packet.to);
        sequence.intern(this.#message, this.#entry);
      } else if (packet.number === TRACE_PACKET.tracePacketDefaults) this.#defaults(sequence, packet.from, packet.to);
      else if (packet.number === TRACE_PACKET.clockSnapshot) {
        for (const [id, clock] of readClocks(this.#message, packet.from, packet.to)) sequence.clocks.set(id, clock);
      }
    }
  }

  #defaults(sequence: Sequence, from: number, to: number): void {
    const { timestampClockId, trackEventDefaults } = PACKET_DEFAULTS.read(this.#message, from, to);
    sequence.clock = timestampClockId ?? sequence.clock;
    sequence.track = trackEventDefaults?.trackUuid ?? sequence.track;
  }

  #sample(sequence: Sequence, from: number, to: number): void {
    const { cpu = 0, timebaseCount: count = 0, callstackIid } = PERF_SAMPLE.read(this.#message, from, to);
    const stack = callstackIid === undefined ? [] : sequence.interned.callstacks.of(callstackIid);
    this.#taker.sample({ time: this.#head.time, cpu, stack, count });
  }

  #trackEvent(sequence: Sequence, from: number, to: number): void {
    const message = this.#message;
    const event = this.#event;
    event.time = this.#head.time;
    event.track = sequence.track;
    message.enter(from, to);
    while (message.next()) {
      switch (message.number) {
        case TRACK_EVENT.type:
          event.type = message.low;
          break;
        case TRACK_EVENT.trackUuid:
          event.track = message.key();
          break;
        case TRACK_EVENT.nameIid:
          event.name = sequence.interned.names.of(message.value());
          break;
        case TRACK_EVENT.categoryIids:
          if (message.type === VARINT) event.category = sequence.interned.categories.of(message.value());
          break;
        case TRACK_EVENT.debugAnnotations:
          if (message.type === LEN) this.#note(sequence, message.from, message.to);
          break;
        case TRACK_EVENT.sourceLocationIid:
          event.place = sequence.interned.places.of(message.value());
          break;
        default:
          this.#rareField(event);
      }
    }
    this.#taker.event(event);
  }

  #rareField(event: Current): void {
    const message = this.#message;
    const { number, type } = message;
    if (number === TRACK_EVENT.flowIds && type === I64) event.flow ??= message.high * 2 ** 32 + message.low;
    else if (number === TRACK_EVENT.name && type === LEN) event.name = message.text();
    else if (number === TRACK_EVENT.categories && type === LEN) event.category = message.text();
    else if (number === TRACK_EVENT.counterValue && type === VARINT)
      event.counter = Number(BigInt.asIntN(64, message.wide()));
    else if (number === TRACK_EVENT.doubleCounterValue && type === I64) event.counter = message.double();
    else if (number === TRACK_EVENT.sourceLocation && type === LEN) {
      event.place = placeOf(SOURCE_LOCATION.read(this.#entry, message.from, message.to));
    }
  }

  #note(sequence: Sequence, from: number, to: number): void {
    const entry = this.#entry;
    let name: NoteName | undefined;
    let value: NoteValue;
    entry.enter(from, to);
    while (entry.next()) {
      switch (entry.number) {
        case DEBUG_ANNOTATION.nameIid:
          name = sequence.interned.noteNames.of(entry.value());
          break;
        case DEBUG_ANNOTATION.stringValueIid:
          value = sequence.interned.values.of(entry.value());
          break;
        case DEBUG_ANNOTATION.pointerValue:
          value = addr(entry.wide());
          break;
        case DEBUG_ANNOTATION.stringValue:
        case DEBUG_ANNOTATION.legacyJsonValue:
          value = entry.text();
          break;
        case DEBUG_ANNOTATION.name:
          name = noteName(entry.text());
          break;
        case DEBUG_ANNOTATION.boolValue:
          value = entry.low !== 0;
          break;
        case DEBUG_ANNOTATION.uintValue:
          value = String(entry.wide());
          break;
        case DEBUG_ANNOTATION.intValue:
          value = String(BigInt.asIntN(64, entry.wide()));
          break;
        case DEBUG_ANNOTATION.doubleValue:
          value = String(entry.double());
          break;
      }
    }
    if (name === undefined || value === undefined) return;
    const event = this.#event;
    if (name.id >= 0) {
      event.notes.set(name.id, value);
      return;
    }
    const argument = { name: name.argument, value: valueText(value) };
    if (event.arguments === noArguments) event.arguments = [argument];
    else (event.arguments as ArgumentValue[]).push(argument);
  }
}
