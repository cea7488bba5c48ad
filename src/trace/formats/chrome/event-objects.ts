import { Damage } from '../read/fields.js';

const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const spaces: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Bytes of one event, and brackets within each other: what is above is damage, and not kept in memory. */
const LONGEST = 16 * 1024 * 1024;
const DEEPEST = 500;

const LIST = 'traceEvents';

const utf8 = new TextDecoder();

/**
 * - `before`: nothing but spaces so far. `members`: between the members of the outermost object.
 * - `skipped`: inside a member that nobody asks for. `list`: between events. `event`: inside one. `over`: behind all.
 */
type State = 'before' | 'members' | 'skipped' | 'list' | 'event' | 'over';

/** Where the reading stands inside a member or an event. */
interface Inner {
  /** Brackets that are open. */
  depth: number;
  text: 'none' | 'inside' | 'escaped';
}

/** Bytes of a chunk. */
interface Piece {
  readonly from: number;
  readonly to: number;
}

/** An event as it was parsed, and the byte of the file where it stands. */
export interface EventObject {
  readonly at: number;
  readonly value: Readonly<Record<string, unknown>>;
}

/**
 * Cuts the events out of JSON (RFC 8259), chunk by chunk. It is a list of objects, or an object whose member
 * `traceEvents` is one. Each byte is looked at once. Memory holds a chunk and one event. Throws {@link Damage}.
 */
export class EventObjects {
  #state: State = 'before';
  readonly #inner: Inner = { depth: 0, text: 'none' };
  /** What of an event was in chunks before. */
  #pieces: Uint8Array[] = [];
  /** Of the event. */
  #from = 0;
  #isObject = false;
  /** Of `members`: the last text, and the byte before. */
  #key = '';
  #last = 0;
  #offset = 0;
  #wasClosed = false;
  /** The byte of the file behind the last whole event. */
  wholeTo = 0;

  /** The list of events has no end. A list without the object around it may be left open, but then something died. */
  get isOpen(): boolean {
    return !this.#wasClosed;
  }

  /** Bytes of an event that has not ended. */
  get torn(): number {
    return this.#state === 'event' ? this.#offset - this.#from : 0;
  }

  feed(chunk: Uint8Array): EventObject[] {
    const found: EventObject[] = [];
    const whole: Piece[] = [];
    try {
      for (let at = 0; at < chunk.length; ) {
        if (this.#state === 'skipped') at = this.#nested(chunk, at);
        else if (this.#state !== 'event') this.#between(chunk[at] as number, this.#offset + at++);
        else at = this.#event(chunk, at, found, whole);
      }
    } catch (error) {
      // Damage in an event before this one is reported first.
      this.#parsedTogether(chunk, whole);
      throw error;
    }
    // One that began in the chunk before is found already.
    for (const event of this.#parsedTogether(chunk, whole)) found.push(event);
    this.#offset += chunk.length;
    return found;
  }

  #between(byte: number, at: number): void {
    if (this.#inner.text !== 'none') this.#keyByte(byte);
    else if (spaces.has(byte)) return;
    else if (this.#state === 'members') this.#member(byte, at);
    else if (this.#state === 'list') this.#listed(byte, at);
    else if (this.#state === 'before' && (byte === OPEN || byte === OPEN_LIST)) {
      this.#isObject = byte === OPEN;
      this.#state = this.#isObject ? 'members' : 'list';
    } else throw new Damage(`the list of events has ended, and more stands behind it at byte ${at}`);
  }

  #member(byte: number, at: number): void {
    const before = this.#last;
    this.#last = byte;
    if (byte === QUOTE) {
      this.#inner.text = 'inside';
      this.#key = '';
    } else if (byte === CLOSE) this.#state = 'over';
    else if (byte === OPEN || byte === OPEN_LIST) {
      if (before !== COLON) throw new Damage(`a member without a name at byte ${at}`);
      const isList = byte === OPEN_LIST && this.#key === LIST;
      this.#inner.depth = isList ? 0 : 1;
      this.#state = isList ? 'list' : 'skipped';
    }
  }

  #keyByte(byte: number): void {
    if (this.#inner.text === 'escaped') this.#inner.text = 'inside';
    else if (byte === BACKSLASH) this.#inner.text = 'escaped';
    else if (byte === QUOTE) this.#inner.text = 'none';
    else if (this.#key.length <= LIST.length) this.#key += String.fromCharCode(byte);
  }

  #listed(byte: number, at: number): void {
    if (byte === CLOSE_LIST) {
      this.#wasClosed = true;
      this.#last = byte;
      this.#state = this.#isObject ? 'members' : 'over';
    } else if (byte === OPEN) {
      this.#from = at;
      this.#inner.depth = 1;
      this.#state = 'event';
    } else if (byte !== COMMA) throw new Damage(`no event where one has to be, at byte ${at}`);
  }

  #event(chunk: Uint8Array, at: number, found: EventObject[], whole: Piece[]): number {
    // Its bracket was the last byte of the chunk before.
    if (this.#pieces.length === 0 && this.#from < this.#offset) this.#pieces.push(Uint8Array.of(OPEN));
    const isNew = this.#pieces.length === 0;
    const from = isNew ? this.#from - this.#offset : 0;
    const end = this.#nested(chunk, at);
    if (this.#offset + end - this.#from > LONGEST) throw this.#atEvent(`an event of more than ${LONGEST} bytes`);
    const piece = chunk.subarray(from, end);
    if (this.#inner.depth > 0) {
      // A chunk's memory is its owner's, so what is kept is a copy.
      this.#pieces.push(Uint8Array.from(piece));
      return end;
    }
    if (isNew) whole.push({ from, to: end });
    else found.push({ at: this.#from, value: this.#parsed(Buffer.concat([...this.#pieces, piece]), this.#from) });
    this.#pieces = [];
    this.wholeTo = this.#offset + end;
    return end;
  }

  /** Goes on to where the brackets that are open close. */
  #nested(chunk: Uint8Array, from: number): number {
    let depth = this.#inner.depth;
    let text = this.#inner.text;
    let at = from;
    while (at < chunk.length && depth > 0) {
      const byte = chunk[at++];
      if (text === 'escaped') text = 'inside';
      else if (text === 'inside') {
        if (byte === QUOTE) text = 'none';
        else if (byte === BACKSLASH) text = 'escaped';
      } else if (byte === QUOTE) text = 'inside';
      else if (byte === OPEN || byte === OPEN_LIST) {
        if (++depth > DEEPEST) throw this.#atEvent(`brackets inside more than ${DEEPEST} others`);
      } else if (byte === CLOSE || byte === CLOSE_LIST) depth--;
    }
    this.#inner.depth = depth;
    this.#inner.text = text;
    if (depth === 0) this.#state = this.#state === 'event' ? 'list' : 'members';
    return at;
  }

  /** Events that lie in one chunk: parsed at once where they are a list, as they nearly always are. */
  #parsedTogether(chunk: Uint8Array, events: readonly Piece[]): EventObject[] {
    const [first] = events;
    const last = events.at(-1);
    if (first === undefined || last === undefined) return [];
    const values = this.#list(chunk.subarray(first.from, last.to), events.length);
    return events.map(({ from, to }, i) => {
      const at = this.#offset + from;
      return { at, value: values?.[i] ?? this.#parsed(chunk.subarray(from, to), at) };
    });
  }

  /** Undefined if there are not so many, or if one of them is damaged. */
  #list(bytes: Uint8Array, count: number): readonly EventObject['value'][] | undefined {
    try {
      const values = JSON.parse(`[${utf8.decode(bytes)}]`) as EventObject['value'][];
      return values.length === count ? values : undefined;
    } catch {
      return undefined;
    }
  }

  #parsed(bytes: Uint8Array, at: number): EventObject['value'] {
    try {
      return JSON.parse(utf8.decode(bytes)) as EventObject['value'];
    } catch {
      throw new Damage(`no JSON object at byte ${at}`);
    }
  }

  #atEvent(what: string): Damage {
    return new Damage(`${what} at byte ${this.#from}`);
  }
}
