import { addr } from '../../../base/addr.js';
import { madeOnce } from '../../../base/made-once.js';
import {
  type CallBegin,
  endMissing,
  type GuestNanos,
  type PlaceRef,
  type TraceEvent,
  type TraceInfo,
  type TraceSink,
} from '../../events/events.js';
import { EVENT } from '../perfetto/fields.js';
import type { TrackDescriptor, Uuid } from '../perfetto/read/descriptors.js';
import { Refs } from '../perfetto/read/refs.js';
import type { TrackEvent } from '../perfetto/read/track-event.js';
import { kept, SortedRuns } from './sorted-runs.js';

interface Track {
  readonly hart: number;
  readonly open: CallBegin[];
  /** Of its last event: times of a track do not go back. */
  last: number;
}

const none = addr(0n);
/** By these formats tell events apart: an instant of another program is none of them. */
const ownCategories: ReadonlySet<string> = new Set([
  ...['trace', 'call', 'poll', 'wait', 'task', 'process', 'state', 'derived', 'watch', 'wake', 'sample'],
  ...['cancelled', 'stuck', 'gap', 'reset', 'console'],
]);

/** A slice's begin or end, or an instant, of any format. */
interface ForeignEvent extends Pick<TrackEvent, 'type' | 'time' | 'track' | 'name' | 'category' | 'arguments'> {
  readonly place?: TrackEvent['place'];
  /** Slices around this one, if the format says it: those that are deeper and open have lost their ends. */
  readonly depth?: number | undefined;
}

/**
 * Gives a sink the events of a trace that another program wrote, and counts them. A slice is a call of a function of
 * that name, a track a hart, an instant a place that was reached. The first event is at 0. Counters and
 * all else that is no slice or instant are left out, and counted; so are flows, which are not.
 */
export class ForeignTrace {
  readonly #sink: TraceSink;
  readonly #refs = new Refs();
  readonly #names = new Map<Uuid, string>();
  readonly #tracks = new Map<Uuid, Track>();
  readonly #places = new Map<string, PlaceRef>();
  #first: number | undefined;
  readonly info: TraceInfo;
  events = 0;
  /** Ends without a begin, and what is neither a slice nor an instant. */
  unmatched = 0;

  constructor(program: string, sink: TraceSink) {
    this.#sink = sink;
    const clock = { name: 'trace', resolutionNs: 1, guest: false };
    this.info = { program, buildId: undefined, arch: 'unknown', clock, isProcess: true, harts: [] };
    sink.begin(this.info);
  }

  track({ uuid, parent, name }: Pick<TrackDescriptor, 'uuid' | 'name'> & Partial<TrackDescriptor>): void {
    const around = parent === undefined ? undefined : this.#names.get(parent);
    this.#names.set(uuid, around ? `${around} ${name}` : name);
  }

  event(event: ForeignEvent): void {
    const { depth } = event;
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
    else this.unmatched++;
  }

  end(isCut: boolean): void {
    this.#sink.end(isCut ? endMissing : undefined);
  }

  #emit(event: TraceEvent): void {
    this.events++;
    this.#sink.event(event);
  }

  #begin(track: Track, { name, place, arguments: values }: ForeignEvent, time: GuestNanos): void {
    const { hart, open } = track;
    const fn = this.#refs.function({ name, instance: name, address: none }, place);
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

  #instant({ hart }: Track, { name, category, place }: ForeignEvent, time: GuestNanos): void {
    const kind = category === '' || ownCategories.has(category) ? 'instant' : category;
    const key = `${kind} ${name}`;
    const ref = madeOnce(this.#places, key, () => {
      const by = { function: undefined, file: place?.file, line: place?.line };
      return { key: this.#places.size, name, category: kind, address: none, by };
    });
    this.#emit({ type: 'place', time, hart, place: ref });
  }

  #trackOf(uuid: Uuid): Track {
    return madeOnce(this.#tracks, uuid, () => {
      const number = this.#tracks.size;
      this.#sink.hart({ number, name: this.#names.get(uuid) || `track ${uuid}` });
      return { hart: number, open: [], last: 0 };
    });
  }
}

/** The same of events in any order: each of several programs gives up its own when it has some. */
export class UnsortedTrace extends ForeignTrace {
  readonly #path: string;
  readonly #events = new SortedRuns<ForeignEvent & { readonly order: number }>(
    (a, b) => a.time - b.time || a.order - b.order,
  );
  #count = 0;
  /** Of tracks whose own no number holds. */
  readonly #numbers = new Map<Uuid, number>();

  constructor(path: string, program: string, sink: TraceSink) {
    super(program, sink);
    this.#path = path;
  }

  override track({ uuid, parent, name }: TrackDescriptor): void {
    const around = parent === undefined ? undefined : this.#numberOf(parent);
    super.track({ uuid: this.#numberOf(uuid), parent: around, name: name || `track ${uuid}` });
  }

  override event({ type, time, track, name, category, place, arguments: values }: ForeignEvent): void {
    const at = { time, track: this.#numberOf(track), order: this.#count++ };
    this.#events.add({ type, ...at, name, category, place, arguments: values });
  }

  /** To be called after some events: what has no room in memory goes to a file. */
  spill(): Promise<void> {
    return kept(this.#path, () => this.#events.spill());
  }

  /** Gives the sink all of them. */
  async *emitAll(): AsyncGenerator<void> {
    const sorted = this.#events.inOrder();
    for (;;) {
      const { done, value } = await kept(this.#path, () => sorted.next());
      if (done) return;
      for (const event of value) super.event(event);
      yield;
    }
  }

  close(): Promise<void> {
    return this.#events.close();
  }

  #numberOf(uuid: Uuid): number {
    if (typeof uuid === 'number') return uuid;
    return madeOnce(this.#numbers, uuid, () => {
      const number = -1 - this.#numbers.size;
      super.track({ uuid: number, name: `track ${uuid}` });
      return number;
    });
  }
}
