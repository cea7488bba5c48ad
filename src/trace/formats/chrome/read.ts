/*
 * Chrome's Trace Event Format (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), read. This
 * part: slices (B, E, X), instants (i, I, R, n) and names of threads and processes (M). Both forms, an array and an
 * object with `traceEvents`. Events may stand in any order, so they are sorted in memory, up to a number; begins and
 * ends (B, E) of one thread stand in theirs. Values of a wrong type are refused.
 */
import { budgetFactor } from '../../../base/budget.js';
import { madeOnce } from '../../../base/made-once.js';
import type { ArgumentValue, TraceSink } from '../../events/events.js';
import { EVENT } from '../perfetto/fields.js';
import { type TraceBytes, tooLarge } from '../read/bytes.js';
import { Damage } from '../read/fields.js';
import { ForeignTrace } from '../read/foreign-trace.js';
import type { TraceRead } from '../read/read-trace.js';
import { type EventObject, EventObjects } from './event-objects.js';

/** Nanoseconds above the first event's time. A slice that has not ended has no duration, an instant -1. */
interface Moment {
  readonly time: number;
  readonly duration: number | null;
  readonly order: number;
  readonly track: number;
  readonly name: string;
  readonly category: string;
  readonly args: readonly ArgumentValue[];
}

/** Some 500 bytes of memory each. */
const MOST = 2_000_000;
const INSTANT = -1;
const instants = new Set(['i', 'I', 'R', 'n']);
const slices = new Set(['B', 'E', 'X']);

/** Reads a file whose beginning was recognized. */
export async function* readChrome(path: string, bytes: TraceBytes, sink: TraceSink): AsyncGenerator<void, TraceRead> {
  const objects = new EventObjects();
  const moments: Moment[] = [];
  const all = new ChromeEvents(moments);
  for await (const chunk of bytes) {
    for (const event of objects.feed(chunk)) all.add(event);
    if (moments.length > MOST * budgetFactor()) throw tooLarge(path, `has more than ${MOST} events`);
    yield;
  }
  all.leaveOpen();
  const story = new ForeignTrace(all.program ?? path, sink);
  for (const [track, name] of all.names()) story.track({ uuid: track, name });
  const { steps, others } = stepsOf(moments.sort(byTime));
  for (const [i, { type, time, depth, moment }] of steps.entries()) {
    const { track, name, category, args } = moment;
    story.event({ type, time, track, name, category, arguments: args, depth });
    if (i % 10_000 === 9999) yield;
  }
  const isCut = bytes.isCut || objects.isOpen;
  const cut = isCut ? { at: objects.wholeTo, bytes: objects.torn } : undefined;
  story.end(isCut);
  const otherPackets = all.others + others;
  return { info: story.info, facts: undefined, events: story.events, isOwn: false, cut, otherPackets };
}

/** What is around another slice begins before it, or is longer. */
function byTime(a: Moment, b: Moment): number {
  return a.time - b.time || (b.duration ?? Infinity) - (a.duration ?? Infinity) || a.order - b.order;
}

interface Begin {
  readonly moment: Moment;
  readonly at: number;
}

/** Checks events, and makes one slice of a begin and its end. */
class ChromeEvents {
  readonly #moments: Moment[];
  readonly #tracks = new Map<string, number>();
  readonly #open: Begin[][] = [];
  readonly #processes = new Map<string, string>();
  readonly #threads = new Map<string, string>();
  #first: number | undefined;
  #count = 0;
  /** Events that are not understood, and ends without a begin. */
  others = 0;

  constructor(moments: Moment[]) {
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
    for (const { moment } of this.#open.flat()) this.#moments.push(moment);
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
    const name = argumentsOf(event).find(({ name }) => name === 'name')?.value;
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
      this.#moments.push(moment(end - time));
    } else if (ph === 'B') this.#begin({ moment: moment(null), at: event.at });
    else this.#moments.push(moment(INSTANT));
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
    else this.#moments.push({ ...moment, duration: time - moment.time });
  }
}

function backwards(at: number): Damage {
  return new Damage(`begins and ends of a thread go back in time at byte ${at}`);
}

interface Step {
  readonly type: number;
  readonly moment: Moment;
  readonly time: number;
  /** Among those of one time. */
  readonly order: number;
  /** Slices around it on its track. */
  readonly depth?: number;
}

/**
 * Begins and ends of slices, and instants, in order. At one time ends come first, the innermost before what is around
 * it; a slice that takes no time ends right behind its begin. `others`: slices that are neither inside nor next to
 * another one of their track.
 */
function stepsOf(moments: readonly Moment[]): { readonly steps: Step[]; readonly others: number } {
  /** By track, of each slice that is open, the outermost first: when it or one around it is over. */
  const open = new Map<number, number[]>();
  let others = 0;
  const steps = moments.flatMap((moment, i): Step[] => {
    const { time, duration, track } = moment;
    if (duration === INSTANT) return [{ type: EVENT.instant, moment, time, order: i }];
    const around = madeOnce(open, track, () => []);
    while ((around.at(-1) ?? Infinity) <= time) around.pop();
    const end = time + (duration ?? Infinity);
    const limit = around.at(-1) ?? Infinity;
    if (duration !== null && limit < end) {
      others++;
      return [];
    }
    const depth = around.length;
    around.push(Math.min(limit, end));
    const begin = { type: EVENT.sliceBegin, moment, time, order: i, depth };
    if (duration === null) return [begin];
    return [begin, { ...begin, type: EVENT.sliceEnd, time: end, order: end > time ? -1 - depth : i + 0.5 }];
  });
  return { steps: steps.sort((a, b) => a.time - b.time || a.order - b.order), others };
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
  return Object.entries(args).map(([name, each]) => {
    return { name, value: typeof each === 'string' ? each : JSON.stringify(each) };
  });
}
