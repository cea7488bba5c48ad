import { addr } from '../../base/addr.js';
import type { CallBegin, GuestNanos, HartInfo, PlaceRef, TraceEvent } from '../events.js';
import { EVENT } from '../formats/perfetto/fields.js';
import { Refs } from './refs.js';
import type { TrackDescriptor, TrackEvent, Uuid } from './track-events.js';

interface Track {
  readonly hart: number;
  readonly open: CallBegin[];
  /** Of its last event: times of a track do not go back. */
  last: number;
}

const none = addr(0n);

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

  constructor(emit: (event: TraceEvent) => void, newHart: (hart: HartInfo) => void) {
    this.#emit = emit;
    this.#newHart = newHart;
  }

  track({ uuid, parent, name }: TrackDescriptor): void {
    const around = parent === undefined ? undefined : this.#names.get(parent);
    this.#names.set(uuid, around ? `${around} ${name}` : name);
  }

  event(event: TrackEvent): void {
    const track = this.#trackOf(event.track);
    this.#first ??= event.time;
    const time = Math.max(track.last, event.time - this.#first) as GuestNanos;
    track.last = time;
    if (event.type === EVENT.sliceBegin) this.#begin(track, event, time);
    else if (event.type === EVENT.sliceEnd) this.#end(track, event, time);
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

  #end(track: Track, _event: TrackEvent, time: GuestNanos): void {
    const begin = track.open.pop();
    if (begin === undefined) return;
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
