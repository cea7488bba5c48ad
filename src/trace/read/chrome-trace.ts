/*
 * Chrome's Trace Event Format (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), read. This
 * part: slices (B, E, X), instants (i, I, R, n) and names of threads and processes (M). Both forms, an array and an
 * object with `traceEvents`; a closing bracket may be missing. Events may stand in any order, so all are kept.
 */
import type { TraceSink } from '../events.js';
import { EVENT } from '../formats/perfetto/fields.js';
import type { TraceBytes } from './bytes.js';
import { Damage } from './fields.js';
import { ForeignStory } from './foreign-trace.js';
import type { TraceRead } from './read-trace.js';

interface ChromeEvent {
  readonly ph?: string;
  readonly name?: string;
  readonly cat?: string;
  /** Microseconds. */
  readonly ts?: number | string;
  readonly dur?: number | string;
  readonly pid?: number | string;
  readonly tid?: number | string;
  readonly args?: Readonly<Record<string, unknown>>;
}

interface Moment {
  readonly event: ChromeEvent;
  readonly type: number;
  readonly time: number;
  /** Of two begins at one time, the longer slice is around the other. */
  readonly duration: number;
  readonly track: number;
}

const instants = new Set(['i', 'I', 'R', 'n']);

/** Reads a file whose beginning was recognized. */
export async function* readChrome(path: string, bytes: TraceBytes, sink: TraceSink): AsyncGenerator<void, TraceRead> {
  const objects = new Objects();
  const all = new Moments();
  for await (const chunk of bytes) {
    for (const event of objects.feed(chunk)) all.add(event);
    yield;
  }
  const story = new ForeignStory(all.program ?? path, sink);
  for (const [track, name] of all.names) story.track(track, name);
  const moments = all.inOrder();
  for (const [i, { event, type, time, track }] of moments.entries()) {
    const args = Object.entries(event.args ?? {}).map(([name, value]) => ({ name, value: textOf(value) }));
    story.event({ type, time, track, name: event.name ?? '', category: event.cat ?? '', arguments: args });
    if (i % 10_000 === 9999) yield;
  }
  const cut = bytes.isCut || objects.torn > 0 ? { at: objects.offset, bytes: objects.torn } : undefined;
  story.end(cut !== undefined);
  return { info: story.info, facts: undefined, events: story.events, isOwn: false, cut, otherPackets: all.others };
}

class Moments {
  readonly names = new Map<number, string>();
  readonly #tracks = new Map<string, number>();
  readonly #processes = new Map<string, string>();
  readonly #threads = new Map<string, string>();
  readonly #all: Moment[] = [];
  others = 0;

  get program(): string | undefined {
    return this.#processes.values().next().value;
  }

  add(event: ChromeEvent): void {
    const { ph = '', pid = 0, tid = 0 } = event;
    const key = `${pid} ${tid}`;
    const name = textOf(event.args?.name ?? '');
    if (ph === 'M' && event.name === 'process_name') this.#processes.set(String(pid), name);
    else if (ph === 'M' && event.name === 'thread_name') this.#threads.set(key, name);
    if (ph === 'M') return;
    const time = Math.round(Number(event.ts) * 1000);
    const isSlice = ph === 'B' || ph === 'E' || ph === 'X';
    if (!(isSlice || instants.has(ph)) || !Number.isSafeInteger(time)) {
      this.others++;
      return;
    }
    const track = this.#trackOf(key);
    const duration = Math.max(0, Math.round(Number(event.dur ?? 0) * 1000)) || 0;
    const at = { event, time, duration, track };
    if (ph === 'X') {
      this.#all.push({ ...at, type: EVENT.sliceBegin });
      this.#all.push({ ...at, type: EVENT.sliceEnd, time: time + duration });
    } else {
      this.#all.push({ ...at, type: ph === 'B' ? EVENT.sliceBegin : ph === 'E' ? EVENT.sliceEnd : EVENT.instant });
    }
  }

  /** At one time what ends comes first, unless it has begun there. */
  inOrder(): readonly Moment[] {
    for (const [key, track] of this.#tracks) this.names.set(track, this.#nameOf(key));
    const rank = ({ type, event, duration }: Moment): number =>
      type === EVENT.sliceEnd && !(event.ph === 'X' && duration === 0) ? 0 : 1;
    const isX = ({ event }: Moment): boolean => event.ph === 'X';
    return this.#all.sort(
      (a, b) => a.time - b.time || (isX(a) && isX(b) ? rank(a) - rank(b) || b.duration - a.duration : 0),
    );
  }

  #trackOf(key: string): number {
    const track = this.#tracks.get(key) ?? this.#tracks.size;
    this.#tracks.set(key, track);
    return track;
  }

  #nameOf(key: string): string {
    const [pid = '', tid = ''] = key.split(' ');
    const process = this.#processes.get(pid) ?? (pid === '0' || pid === '1' ? '' : `process ${pid}`);
    return `${process} ${this.#threads.get(key) ?? `thread ${tid}`}`.trim();
  }
}

const OPEN = 0x7b;
const CLOSE = 0x7d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

/** Cuts the objects of the list of events out of chunks, without what is around them. */
class Objects {
  readonly #utf8 = new TextDecoder();
  #rest: Uint8Array = new Uint8Array(0);
  #isInside = false;
  #isOver = false;
  /** Bytes of the file before the rest. */
  offset = 0;

  /** Bytes of an object that has not ended. */
  get torn(): number {
    return this.#isOver ? 0 : this.#rest.length;
  }

  feed(chunk: Uint8Array): ChromeEvent[] {
    if (this.#isOver) return [];
    const bytes = Buffer.concat([this.#rest, chunk]);
    let at = this.#isInside ? 0 : this.#enter(bytes);
    const found: ChromeEvent[] = [];
    for (; at < bytes.length; at++) {
      if (bytes[at] === CLOSE_LIST) {
        this.#isOver = true;
        break;
      }
      if (bytes[at] !== OPEN) continue;
      const end = endOf(bytes, at);
      if (end === undefined) break;
      found.push(this.#parse(bytes, at, end));
      at = end - 1;
    }
    this.offset += at;
    this.#rest = bytes.subarray(at);
    return found;
  }

  /** Behind the bracket of the list. */
  #enter(bytes: Buffer): number {
    const key = bytes.indexOf('"traceEvents"');
    const first = bytes.findIndex((byte) => byte === OPEN || byte === OPEN_LIST);
    const list = bytes[first] === OPEN_LIST ? first : bytes.indexOf(OPEN_LIST, key);
    this.#isInside = list >= 0;
    return this.#isInside ? list + 1 : 0;
  }

  #parse(bytes: Buffer, from: number, to: number): ChromeEvent {
    try {
      return JSON.parse(this.#utf8.decode(bytes.subarray(from, to))) as ChromeEvent;
    } catch {
      throw new Damage(`no JSON object at byte ${this.offset + from}`);
    }
  }
}

/** The offset behind an object; undefined if it does not end here. */
function endOf(bytes: Uint8Array, from: number): number | undefined {
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++;
    } else if (byte === OPEN) depth++;
    else if (byte === CLOSE && --depth === 0) return at + 1;
  }
  return undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
