/*
 * Chrome's Trace Event Format (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), read. This
 * part: slices (B, E, X), instants (i, I, R, n) and names of threads and processes (M). Both forms, an array and an
 * object with `traceEvents`. Events may stand in any order, so they are sorted, past memory; begins and ends (B, E) of
 * one thread stand in theirs. Values of a wrong type are refused.
 */
import type { TraceSink } from '../../events/events.js';
import { EVENT } from '../perfetto/fields.js';
import type { TraceBytes } from '../read/bytes.js';
import { Damage } from '../read/fields.js';
import { ForeignTrace } from '../read/foreign-trace.js';
import type { TraceRead } from '../read/read-trace.js';
import { kept, SortedRuns } from '../read/sorted-runs.js';
import { type EventObject, EventObjects } from './event-objects.js';

/** Nanoseconds above the first event's time. A slice that has not ended has no duration, an instant -1. */
interface Moment {
  readonly time: number;
  readonly duration: number | null;
  /** Of what came, its begin; and of a begin and an end their end, too. */
  readonly order: number;
  readonly closes?: number;
  readonly track: number;
  readonly name: string;
  readonly category: string;
  readonly args: readonly (readonly [name: string, value: string])[];
}

const INSTANT = -1;
const instants = new Set(['i', 'I', 'R', 'n']);
const slices = new Set(['B', 'E', 'X']);

/** Reads a file whose beginning was recognized. */
export async function* readChrome(path: string, bytes: TraceBytes, sink: TraceSink): AsyncGenerator<void, TraceRead> {
  const objects = new EventObjects();
  const moments = new SortedRuns<Moment>(byTime);
  const all = new ChromeEvents(moments);
  try {
    for await (const chunk of bytes) {
      for (const event of objects.feed(chunk)) all.add(event);
      await kept(path, () => moments.spill());
      yield;
    }
    all.leaveOpen();
    const story = new ForeignTrace(all.program ?? path, sink);
    for (const [track, name] of all.names()) story.track({ uuid: track, name });
    const nested = new NestedSlices(story);
    const sorted = moments.inOrder();
    for (;;) {
      const { done, value } = await kept(path, () => sorted.next());
      if (done) break;
      for (const moment of value) nested.add(moment);
      yield;
    }
    nested.end();
    const isCut = bytes.isCut || objects.isOpen;
    const cut = isCut ? { at: objects.wholeTo, bytes: objects.torn } : undefined;
    story.end(isCut);
    const otherPackets = all.others + nested.others;
    return { info: story.info, facts: undefined, events: story.events, isOwn: false, cut, otherPackets };
  } finally {
    await moments.close();
  }
}

/** What is around another slice begins before it, or is longer; of begins with an end their order says it. */
function byTime(a: Moment, b: Moment): number {
  if (a.time !== b.time || a.track !== b.track) return a.time - b.time || a.track - b.track;
  const isLonger = a.closes === undefined || b.closes === undefined;
  return (isLonger && (b.duration ?? Infinity) - (a.duration ?? Infinity)) || a.order - b.order;
}

interface Begin {
  readonly moment: Moment;
  readonly at: number;
}

/** Checks events, and makes one slice of a begin and its end. */
class ChromeEvents {
  readonly #moments: SortedRuns<Moment>;
  readonly #tracks = new Map<string, number>();
  readonly #open: Begin[][] = [];
  readonly #processes = new Map<string, string>();
  readonly #threads = new Map<string, string>();
  #first: number | undefined;
  #count = 0;
  /** Events that are not understood, and ends without a begin. */
  others = 0;

  constructor(moments: SortedRuns<Moment>) {
    this.#moments = moments;
  }

  get program(): string | undefined {
    return this.#processes.values().next().value;
  }

  add(event: EventObject): void {
    const ph = textOf(event, 'ph');
    if (ph === 'M') this.#name(event);
    else if (!(slices.has(ph) || instants.has(ph)) || (ph === 'X' && event.value.dur === undefined)) this.others++;
    else this.#timed(event, ph);
  }

  /** What has begun and not ended is known now. */
  leaveOpen(): void {
    for (const { moment } of this.#open.flat()) this.#moments.add(moment);
  }

  *names(): Generator<[track: number, name: string]> {
    for (const [key, track] of this.#tracks) {
      const [pid = '', tid = ''] = key.split('\0');
      const process = this.#processes.get(pid) ?? (pid === '0' || pid === '1' ? '' : `process ${pid}`);
      yield [track, `${process} ${this.#threads.get(key) ?? `thread ${tid}`}`.trim()];
    }
  }

  #name(event: EventObject): void {
    const what = textOf(event, 'name');
    const name = argumentsOf(event).find(([key]) => key === 'name')?.[1];
    if (name === undefined) return;
    if (what === 'process_name') this.#processes.set(idOf(event, 'pid'), name);
    else if (what === 'thread_name') this.#threads.set(keyOf(event), name);
  }

  #timed(event: EventObject, ph: string): void {
    const micros = numberOf(event, 'ts');
    this.#first ??= Math.floor(micros);
    const time = nanos(event, micros - this.#first);
    const key = keyOf(event);
    const track = this.#tracks.get(key) ?? this.#tracks.size;
    this.#tracks.set(key, track);
    if (ph === 'E') {
      this.#end(event, track, time);
      return;
    }
    const name = textOf(event, 'name');
    const category = textOf(event, 'cat');
    const args = argumentsOf(event);
    const order = this.#count++;
    const moment = (duration: number | null): Moment => ({ time, duration, order, track, name, category, args });
    // Both ends are rounded, not the distance between them: what ends where another begins still does.
    if (ph === 'X') {
      const end = nanos(event, micros - this.#first + durationOf(event));
      this.#moments.add(moment(end - time));
    } else if (ph === 'B') this.#begin({ moment: moment(null), at: event.at });
    else this.#moments.add(moment(INSTANT));
  }

  #begin(begin: Begin): void {
    const { track, time } = begin.moment;
    const open = this.#open[track] ?? [];
    this.#open[track] = open;
    const around = open.at(-1);
    if (around && time < around.moment.time) throw backwards(begin.at);
    open.push(begin);
  }

  #end(event: EventObject, track: number, time: number): void {
    const moment = this.#open[track]?.pop()?.moment;
    if (moment === undefined) this.others++;
    else if (time < moment.time) throw backwards(event.at);
    else {
      const args = [...moment.args, ...argumentsOf(event)];
      this.#moments.add({ ...moment, args, duration: time - moment.time, closes: this.#count++ });
    }
  }
}

function backwards(at: number): Damage {
  return new Damage(`begins and ends of a thread go back in time at byte ${at}`);
}

interface OpenSlice {
  readonly moment: Moment;
  readonly end: number;
  /** When it or the first around it that has an end is over. */
  readonly limit: number;
  /** Slices around it on its track. */
  readonly depth: number;
  isOver: boolean;
}

/** Tells slices that come in the order of their begins, with their ends in order among them. */
class NestedSlices {
  readonly #story: ForeignTrace;
  /** By track, the outermost first. */
  readonly #open = new Map<number, OpenSlice[]>();
  readonly #ends = new Ends();
  /** Slices that are neither inside nor next to another one of their track. */
  others = 0;

  constructor(story: ForeignTrace) {
    this.#story = story;
  }

  add(moment: Moment): void {
    const { time, duration, track } = moment;
    this.#endBefore(time);
    const open = this.#open.get(track) ?? [];
    this.#open.set(track, open);
    for (let last = open.at(-1); last && last.end <= time && !isInside(moment, last.moment); last = open.at(-1))
      this.#end(last);
    if (duration === INSTANT) {
      this.#emit(EVENT.instant, moment, time);
      return;
    }
    const end = time + (duration ?? Infinity);
    const limit = open.at(-1)?.limit ?? Infinity;
    if (duration !== null && limit < end) {
      this.others++;
      return;
    }
    const slice = { moment, end, limit: Math.min(limit, end), depth: open.length, isOver: false };
    this.#emit(EVENT.sliceBegin, moment, time, slice.depth);
    open.push(slice);
    if (end !== Infinity) this.#ends.push(slice);
  }

  end(): void {
    this.#endBefore(Infinity);
  }

  #endBefore(time: number): void {
    for (let slice = this.#ends.first; slice && slice.end < time; slice = this.#ends.first) {
      this.#ends.pop();
      if (!slice.isOver) this.#end(slice);
    }
  }

  #end(slice: OpenSlice): void {
    slice.isOver = true;
    const open = this.#open.get(slice.moment.track) as OpenSlice[];
    open.length = slice.depth;
    this.#emit(EVENT.sliceEnd, slice.moment, slice.end, slice.depth);
  }

  #emit(type: number, { track, name, category, args }: Moment, time: number, depth?: number): void {
    const values = args.map(([name, value]) => ({ name, value }));
    this.#story.event({ type, time, track, name, category, arguments: values, depth });
  }
}

/** Whether it began and ended before the end of the other one came, which has the same time. */
function isInside({ closes }: Moment, other: Moment): boolean {
  return closes !== undefined && other.closes !== undefined && closes < other.closes;
}

/** A binary heap: the slice that ends first; of those that end at once, the innermost. */
class Ends {
  readonly #slices: OpenSlice[] = [];

  get first(): OpenSlice | undefined {
    return this.#slices[0];
  }

  push(slice: OpenSlice): void {
    const all = this.#slices;
    let at = all.push(slice) - 1;
    for (let above = (at - 1) >> 1; at > 0 && isEarlier(slice, all[above] as OpenSlice); above = (at - 1) >> 1) {
      all[at] = all[above] as OpenSlice;
      at = above;
    }
    all[at] = slice;
  }

  pop(): void {
    const all = this.#slices;
    const last = all.pop();
    if (last === undefined || all.length === 0) return;
    let at = 0;
    for (let below = 1; below < all.length; below = 2 * at + 1) {
      if (below + 1 < all.length && isEarlier(all[below + 1] as OpenSlice, all[below] as OpenSlice)) below++;
      if (!isEarlier(all[below] as OpenSlice, last)) break;
      all[at] = all[below] as OpenSlice;
      at = below;
    }
    all[at] = last;
  }
}

function isEarlier(a: OpenSlice, b: OpenSlice): boolean {
  return a.end < b.end || (a.end === b.end && a.depth > b.depth);
}

function keyOf(event: EventObject): string {
  return `${idOf(event, 'pid')}\0${idOf(event, 'tid')}`;
}

/** Without one, that of the first: some programs leave it out. */
function idOf({ value, at }: EventObject, member: 'pid' | 'tid'): string {
  const id = value[member] ?? 0;
  if (typeof id === 'number' || typeof id === 'string') return String(id);
  throw new Damage(`the event at byte ${at} has a ${member} that is neither a number nor a text`);
}

/** Without one, an empty text. */
function textOf({ value, at }: EventObject, member: 'ph' | 'name' | 'cat'): string {
  const text = value[member] ?? '';
  if (typeof text === 'string') return text;
  throw new Damage(`the event at byte ${at} has a ${member} that is no text`);
}

/** Some programs write numbers as texts. */
function numberOf({ value, at }: EventObject, member: 'ts' | 'dur'): number {
  const given = value[member];
  const isNumber = typeof given === 'number' || (typeof given === 'string' && /^-?\d+(?:\.\d+)?$/.test(given));
  if (isNumber && Number.isFinite(Number(given))) return Number(given);
  throw new Damage(`the event at byte ${at} has a ${member} that is no number`);
}

function durationOf(event: EventObject): number {
  const duration = numberOf(event, 'dur');
  if (duration < 0) throw new Damage(`the event at byte ${event.at} has a dur below 0`);
  return duration;
}

function nanos({ at }: EventObject, micros: number): number {
  const time = Math.round(micros * 1000);
  if (Number.isSafeInteger(time)) return time;
  throw new Damage(`the event at byte ${at} has a time that is too far from the first one's`);
}

function argumentsOf({ value, at }: EventObject): Moment['args'] {
  const { args } = value;
  if (args === undefined) return [];
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    throw new Damage(`the event at byte ${at} has args that are no object`);
  }
  return Object.entries(args).map(([name, each]) => [name, typeof each === 'string' ? each : JSON.stringify(each)]);
}
