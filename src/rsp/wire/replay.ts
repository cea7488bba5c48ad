import { Buffer } from 'node:buffer';
import { messageOf, RsptraceError } from '../../base/errors.js';
import type { Transport, TransportEvents } from './transport.js';
import { type WireEntry, WireReader } from './wire-log.js';

/** The longest unit kept: a packet that does not end is passed on in pieces. */
const LONGEST = 4 * 1024 * 1024;

/**
 * Cuts one direction of a wire into units, whatever chunks it came in. A unit is a whole packet with frame and sum
 * (`$g#67`), a notification (`%...#..`), a single `+`, `-` or `\x03`, or a run of anything else. Works on latin-1
 * text.
 */
export class WireUnits {
  #rest = '';

  /** Takes the next bytes; returns the units that are complete now. */
  push(text: string): string[] {
    const all = this.#rest === '' ? text : this.#rest + text;
    const units: string[] = [];
    let at = 0;
    while (at < all.length) {
      const end = endOf(all, at);
      if (end === undefined) break;
      units.push(all.slice(at, end));
      at = end;
    }
    this.#rest = all.slice(at);
    if (this.#rest.length > LONGEST) units.push(this.rest());
    return units;
  }

  /** What has come of a packet that never ended. */
  rest(): string {
    const rest = this.#rest;
    this.#rest = '';
    return rest;
  }
}

/** Where the unit that starts at `at` ends; undefined when that has not come yet. */
function endOf(text: string, at: number): number | undefined {
  const first = text[at];
  if (first === '+' || first === '-' || first === '\x03') return at + 1;
  if (first === '$' || first === '%') {
    const hash = text.indexOf('#', at);
    const restart = text.indexOf('$', at + 1);
    if (restart >= 0 && (hash < 0 || restart < hash)) return restart;
    return hash < 0 || hash + 3 > text.length ? undefined : hash + 3;
  }
  let end = at + 1;
  while (end < text.length && !'+-$%\x03'.includes(text[end] as string)) end++;
  return end;
}

/** The bytes that are passed to the client at once: it may send more after each. */
const MOST_AT_ONCE = 64 * 1024;

/** A packet, a byte or a notification of a recording; `write` keeps the client's writes apart. */
interface Item {
  readonly line: number;
  readonly to: 'stub' | 'client' | 'nobody';
  readonly unit: string;
}

/** A recording, item by item. */
class RecordedItems {
  readonly #reader: WireReader;
  readonly #units = { stub: new WireUnits(), client: new WireUnits() };
  /** Read and not yet taken. */
  readonly #items: Item[] = [];
  #ended = false;

  constructor(path: string) {
    this.#reader = new WireReader(path);
  }

  get path(): string {
    return this.#reader.path;
  }

  /** The item behind `index` others; undefined if the recording has ended before it. */
  peek(index = 0): Item | undefined {
    while (index >= this.#items.length) if (!this.#readMore()) return undefined;
    return this.#items[index];
  }

  shift(): void {
    this.#items.shift();
  }

  /** Takes an item out of the order. It was peeked at. */
  take(index: number): Item | undefined {
    return this.#items.splice(index, 1)[0];
  }

  [Symbol.dispose](): void {
    this.#reader[Symbol.dispose]();
  }

  #readMore(): boolean {
    const entry = this.#ended ? undefined : this.#reader.read();
    if (entry === undefined) {
      this.#ended = true;
      return false;
    }
    for (const item of this.#itemsOf(entry)) this.#items.push(item);
    return true;
  }

  #itemsOf(entry: WireEntry): Item[] {
    const { line } = entry;
    if (entry.kind === 'open') return [];
    if (entry.kind === 'closed') {
      this.#ended = true;
      const torn = this.#units.client.rest();
      const last: Item = { line, to: 'nobody', unit: entry.by };
      return torn === '' ? [last] : [{ line, to: 'client', unit: torn }, last];
    }
    const units = this.#units[entry.to].push(entry.text);
    const wanted = entry.to === 'stub' ? units.filter((unit) => unit !== '+') : units;
    return wanted.map((unit) => ({ line, to: entry.to, unit }));
  }
}

/**
 * Plays the stub's side of a recording. The client's packets are compared, one by one, with the recorded ones. After
 * each, the stub's recorded answer comes back. Only the order is kept, not the time. Acknowledgements are not
 * compared, and packets may be spread over writes in another way. An answer comes once its own packet was sent.
 */
export class Replay implements Transport {
  readonly name: string;
  readonly #events: TransportEvents;
  readonly #recording: RecordedItems;
  readonly #fromClient = new WireUnits();
  /** What the client has sent and the recording has not matched yet. */
  readonly #sent: string[] = [];
  /** Packets that were matched and not yet answered. */
  #owed = 0;
  /** The last recorded write that was matched. */
  #write = 0;
  #isOpen = true;
  #scheduled = false;

  /** Opens a recording. Throws `RSP_REPLAY_UNREADABLE`. */
  constructor(path: string, events: TransportEvents) {
    this.name = `replay:${path}`;
    this.#events = events;
    this.#recording = new RecordedItems(path);
    this.#schedule();
  }

  write(bytes: Uint8Array): boolean {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    for (const unit of this.#fromClient.push(text)) if (unit !== '+') this.#sent.push(unit);
    this.#schedule();
    return true;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#recording[Symbol.dispose]();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Never from within a write, because a socket would not answer there either.
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#isOpen) this.#play();
    });
  }

  #play(): void {
    try {
      const text = this.#answers();
      if (text !== '') {
        const bytes = Buffer.from(text, 'latin1');
        this.#schedule();
        this.#events.data(bytes, bytes.length);
        return;
      }
      const item = this.#recording.peek();
      if (item?.to === 'nobody' && item.unit === 'stub') this.#end(undefined);
      else if ((item === undefined || item.to === 'nobody') && (this.#sent.length > 0 || this.#owed > 0)) {
        throw new RsptraceError('RSP_REPLAY_ENDED', `The recording ${this.#recording.path} ends here`, {
          hint: 'it was cut off, or its client left; what came before was replayed',
        });
      }
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(messageOf(error)));
    }
  }

  /** What the stub says now. */
  #answers(): string {
    let text = '';
    while (text.length < MOST_AT_ONCE) {
      const item = this.#recording.peek();
      if (item === undefined || item.to === 'nobody') break;
      if (item.to === 'client') {
        this.#recording.shift();
        text += this.#say(item);
        continue;
      }
      const sent = this.#sent.shift();
      if (sent === undefined) {
        const early = this.#early(item);
        if (early === undefined) break;
        text += this.#say(early);
        continue;
      }
      if (!same(sent, item.unit)) throw this.#diverged(sent, item);
      this.#recording.shift();
      this.#write = item.line;
      if (item.unit !== '\x03') this.#owed++;
    }
    return text;
  }

  #say({ unit }: Item): string {
    if (isAnswer(unit) && this.#owed > 0) this.#owed--;
    return unit;
  }

  /**
   * The answer to a sent packet, for the case that the recorded write continued behind it but this client waits
   * first.
   */
  #early(next: Item): Item | undefined {
    if (this.#owed === 0 || next.line !== this.#write || next.unit === '\x03') return undefined;
    for (let index = 0; ; index++) {
      const item = this.#recording.peek(index);
      if (item === undefined || item.to === 'nobody') return undefined;
      if (item.to === 'stub' && item.line !== this.#write) return undefined;
      if (item.to === 'client') return this.#recording.take(index);
    }
  }

  #diverged(sent: string, item: Item): RsptraceError {
    return new RsptraceError(
      'RSP_REPLAY_DIVERGED',
      `The replay leaves the recording at ${this.#recording.path}:${item.line}: "${show(sent)}" is sent, where "${show(item.unit)}" was`,
      { hint: 'replay with the command, the options and the ELF of the recording' },
    );
  }

  #end(error: Error | undefined): void {
    this.close();
    this.#events.closed(error);
  }
}

/**
 * What a client says of itself in qSupported changes from version to version, and the answer is the recorded one
 * anyway.
 */
function same(sent: string, recorded: string): boolean {
  return sent === recorded || (sent.startsWith('$qSupported:') && recorded.startsWith('$qSupported:'));
}

/** A packet that ends the wait for an answer: console output does not. */
function isAnswer(unit: string): boolean {
  return unit[0] === '$' && !/^\$O(?!K#)/.test(unit);
}

function show(unit: string): string {
  const packet = /^\$(.*)#..$/s.exec(unit)?.[1] ?? unit;
  return packet
    .slice(0, 60)
    .replace(/[^\x20-\x7e]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
