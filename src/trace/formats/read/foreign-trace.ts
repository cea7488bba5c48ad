import { addr } from '../../../base/addr.js';
import {
  type CallBegin,
  endMissing,
  type GuestNanos,
  type HartInfo,
  type PlaceRef,
  type TraceEvent,
  type TraceInfo,
  type TraceSink,
} from '../../events/events.js';
import { EVENT } from '../perfetto/fields.js';
import { Refs } from '../perfetto/read/refs.js';
import type { TrackDescriptor, TrackEvent, Uuid } from '../perfetto/read/track-events.js';

interface Track {
  readonly hart: number;
  readonly open: CallBegin[];
  /** Of its last event: times of a track do not go back. */
  last: number;
}

const none = addr(0n);
const noNotes: readonly never[] = [];

/** What is said of a trace that another program wrote. */
export function foreignInfo(program: string): TraceInfo {
  const clock = { name: 'trace', resolutionNs: 1, guest: false };
  return { program, buildId: undefined, arch: 'unknown', clock, isProcess: true, harts: [] };
}

/** A slice's begin or end, or an instant, of a format that is not Perfetto's. */
interface ForeignEvent {
  /** See `EVENT`. */
  readonly type: number;
  /** Nanoseconds of any clock: the first event is at 0. */
  readonly time: number;
  readonly track: number;
  readonly name: string;
  readonly category: string;
  readonly arguments: TrackEvent['arguments'];
  /** Slices around this one, if the format says it: those that are deeper and open have lost their ends. */
  readonly depth?: number | undefined;
}

/** Gives a sink what a trace of another format holds, and counts it. */
export class ForeignStory {
  readonly #sink: TraceSink;
  readonly #trace: ForeignTrace;
  readonly info: TraceInfo;
  events = 0;

  constructor(program: string, sink: TraceSink) {
    this.#sink = sink;
    this.info = foreignInfo(program);
    this.#trace = new ForeignTrace(
      (event) => {
        this.events++;
        sink.event(event);
      },
      (hart) => sink.hart(hart),
    );
    sink.begin(this.info);
  }

  track(uuid: number, name: string): void {
    const none = { isCounter: false, isProcess: false, isThread: false, labels: [] };
    this.#trace.track({ uuid, parent: undefined, name, rank: 0, description: undefined, ...none });
  }

  /** Ends without a begin. */
  get unmatched(): number {
    return this.#trace.unmatched;
  }

  event({ type, time, track, name, category, arguments: values, depth }: ForeignEvent): void {
    // Spelt out: copied from the event it takes ten times as long.
    const none = undefined;
    const event: TrackEvent = {
      type,
      time,
      track,
      name,
      category,
      arguments: values,
      place: none,
      flow: none,
      counter: none,
      memo: none,
      notes: noNotes,
    };
    this.#trace.event(event, depth);
  }

  end(isCut: boolean): void {
    this.#sink.end(isCut ? endMissing : undefined);
  }
}

/**
 * The events of a trace that another program wrote, from its TrackEvents. A slice is a call of a function of that
 * name, a track a hart, an instant a place that was reached. Counters, flows and everything that is no TrackEvent are
 * left out.
 */
export class ForeignTrace {
  readonly #emit: (event: TraceEvent) => void;
  readonly #newHart: (hart: HartInfo) => void;
  readonly #refs = new Refs();
  readonly #names = new Map<Uuid, string>();
  readonly #tracks = new Map<Uuid, Track>();
  readonly #places = new Map<string, PlaceRef>();
  #first: number | undefined;
  /** Ends without a begin. */
  unmatched = 0;

  constructor(emit: (event: TraceEvent) => void, newHart: (hart: HartInfo) => void) {
    this.#emit = emit;
    this.#newHart = newHart;
  }

  track({ uuid, parent, name }: TrackDescriptor): void {
    const around = parent === undefined ? undefined : this.#names.get(parent);
    this.#names.set(uuid, around ? `${around} ${name}` : name);
  }

  event(event: TrackEvent, depth?: number): void {
    const track = this.#trackOf(event.track);
    this.#first ??= event.time;
    const time = Math.max(track.last, event.time - this.#first) as GuestNanos;
    track.last = time;
    const isEnd = event.type === EVENT.sliceEnd;
    if (depth !== undefined) this.#lose(track, isEnd ? depth + 1 : depth, time);
    if (event.type === EVENT.sliceBegin) this.#begin(track, event, time);
    else if (isEnd && (depth === undefined || track.open.length === depth + 1)) this.#end(track, time);
    else if (isEnd) this.unmatched++;
    else if (event.type === EVENT.instant) this.#instant(track, event, time);
  }

  #begin(track: Track, { name, place, arguments: values }: TrackEvent, time: GuestNanos): void {
    const { hart, open } = track;
    const fn = this.#refs.function(name, none, undefined, place);
    const around = open.at(-1);
    const begin: CallBegin = {
      type: 'call-begin',
      time,
      hart,
      function: fn,
      arguments: values,
      around,
      depth: open.length,
    };
    open.push(begin);
    this.#emit(begin);
  }

  /** What is deeper than `depth` has ended, nobody knows when. */
  #lose({ open }: Track, depth: number, time: GuestNanos): void {
    while (open.length > depth) {
      const begin = open.pop() as CallBegin;
      const { hart, time: began, function: fn } = begin;
      this.#emit({ type: 'call-lost', time, hart, function: fn, depth: begin.depth, began, begin });
    }
  }

  #end(track: Track, time: GuestNanos): void {
    const begin = track.open.pop();
    if (begin === undefined) {
      this.unmatched++;
      return;
    }
    const { hart, depth, time: began, function: fn } = begin;
    this.#emit({ type: 'call-end', time, hart, function: fn, depth, began, begin });
  }

  #instant({ hart }: Track, { name, category, place }: TrackEvent, time: GuestNanos): void {
    const kind = category === '' ? 'instant' : category;
    const key = `${kind} ${name}`;
    let ref = this.#places.get(key);
    if (ref === undefined) {
      const by = { function: undefined, file: place?.file, line: place?.line };
      ref = { key: this.#places.size, name, category: kind, address: none, by };
      this.#places.set(key, ref);
    }
    this.#emit({ type: 'place', time, hart, place: ref });
  }

  #trackOf(uuid: Uuid): Track {
    let track = this.#tracks.get(uuid);
    if (track === undefined) {
      const number = this.#tracks.size;
      track = { hart: number, open: [], last: 0 };
      this.#tracks.set(uuid, track);
      this.#newHart({ number, name: this.#names.get(uuid) || `track ${uuid}` });
    }
    return track;
  }
}
