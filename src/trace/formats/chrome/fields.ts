// What events of Chrome's trace format have: fields, and times of slices.

import { hex } from '../../../base/addr.js';
import type { AnyBegin, Cancelled, FunctionRef, FutureRef, GuestNanos, Wake, WatchHit } from '../../events/events.js';
import { calledOf } from '../../events/future-names.js';
import { actorText, placeText, rootText, stackText } from '../../events/text.js';
import { encoded, json, quote } from '../text-lines.js';

/** What `args` of an event may hold; what is undefined is left out. */
export type Args = Readonly<Record<string, string | number | boolean | undefined>>;

/** What an event is of. */
export interface Named {
  readonly category: string;
  /** Viewers put what has one category and id on one track. */
  readonly id?: string;
  readonly name: string;
  readonly args: Args;
}

export function named({ category, id, name, args }: Named): string {
  return `"cat":${quote(category)},${id === undefined ? '' : `"id":"${id}",`}"name":${quote(name)},"args":${json(args)}`;
}

/** What begins and ends of a function's calls, or of a Future's polls, have in common: made once for each. */
const commons = new WeakMap<FunctionRef | FutureRef, Common>();

interface Common {
  /** Its place may be learnt later. */
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly piece: Uint8Array;
}

export function commonPiece(begin: AnyBegin): Uint8Array {
  const what = begin.type === 'call-begin' ? begin.function : begin.future;
  const { file, line, instance, kind } = what;
  const known = commons.get(what);
  if (known !== undefined && known.file === file && known.line === line) return known.piece;
  const at = placeText(what);
  const text =
    'future' in what
      ? named({ category: 'poll', name: calledOf(what), args: { future: instance, at } })
      : named({
          category: 'call',
          name: what.name,
          args: { function: instance, kind, address: hex(what.address), at },
        });
  const piece = encoded(text);
  commons.set(what, { file, line, piece });
  return piece;
}

/** An access of a watched place. */
export function accessIn(event: WatchHit): Args {
  const { watch } = event;
  return {
    watch: watch.name,
    access: event.access,
    old: event.old,
    value: event.value,
    changed: event.changed,
    by: actorText(event),
    inlined: event.inlined.length > 1 ? stackText(event.inlined) : undefined,
    pc: hex(event.pc),
    address: hex(watch.address),
    type: watch.type,
  };
}

/** The task that something happens to, and who does it. */
export function rolesIn({ root, by, caller }: Wake | Cancelled): Args {
  return { task: root && rootText(root), by: by && rootText(by), function: caller.function, at: placeText(caller) };
}

/** Picoseconds between two begins or ends that have one time. */
const STEP = 1;
/**
 * From this time (73 minutes, in nanoseconds) a double of microseconds cannot hold picoseconds. It holds these units
 * for 26 days.
 */
const LATE = 2 ** 42;
const LATE_STEP = 250;

/** Nanoseconds, and picoseconds. */
export interface SliceTime {
  nanos: number;
  picos: number;
}

/**
 * Times of begins and ends of slices. On each track every time is later than the one before. Picoseconds are added if
 * the clock gives the same time, or one earlier than the last written one.
 */
export class SliceTimes {
  readonly #last = new Map<number, SliceTime>();

  /** That of the next begin or end on a track. Valid until the next one. */
  next(track: number, time: GuestNanos): Readonly<SliceTime> {
    let last = this.#last.get(track);
    if (last === undefined) {
      last = { nanos: time, picos: 0 };
      this.#last.set(track, last);
    } else if (time > last.nanos) {
      last.nanos = time;
      last.picos = 0;
    } else {
      last.picos += last.nanos < LATE ? STEP : LATE_STEP;
      if (last.picos >= 1000) {
        last.nanos++;
        last.picos = 0;
      }
    }
    return last;
  }

  /** The time of something else on the track: not before its last begin or end. */
  at(track: number, time: GuestNanos): Readonly<SliceTime> {
    const last = this.#last.get(track);
    return last === undefined || time > last.nanos ? { nanos: time, picos: 0 } : last;
  }
}
