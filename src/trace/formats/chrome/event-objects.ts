import { Damage } from '../read/fields.js';

const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const spaces: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Brackets within each other: what is above is damage. */
const DEEPEST = 500;
/** Events that are parsed together. */
const TOGETHER = 1000;

const LIST = 'traceEvents';

const utf8 = new TextDecoder();

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
 * Cuts the events out of JSON (RFC 8259). It is a list of objects, or an object whose member `traceEvents` is one. Each
 * byte is looked at once. Throws {@link Damage}.
 */
export class EventObjects {
  readonly #bytes: Uint8Array;
  #at = 0;
  /** The list of events has no end. A list without the object around it may be left open, but then something died. */
  isOpen = true;
  /** The byte of the file behind the last whole event. */
  wholeTo = 0;
  /** Bytes of an event that has not ended. */
  torn = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Some at once. Damage in an event is reported before that of what is behind it. */
  *all(): Generator<EventObject[]> {
    let pieces: Piece[] = [];
    try {
      for (const piece of this.#whole()) {
        if (pieces.push(piece) < TOGETHER) continue;
        yield this.#parsedTogether(pieces);
        pieces = [];
      }
    } catch (error) {
      this.#parsedTogether(pieces);
      throw error;
    }
    yield this.#parsedTogether(pieces);
  }

  *#whole(): Generator<Piece> {
    const first = this.#next();
    if (first === OPEN_LIST) yield* this.#events();
    else if (first === OPEN) yield* this.#members();
    if ((first === OPEN || first === OPEN_LIST ? this.#next() : first) === undefined) return;
    throw new Damage(`the list of events has ended, and more stands behind it at byte ${this.#at - 1}`);
  }

  *#members(): Generator<Piece> {
    let key = '';
    let before = 0;
    for (let byte = this.#next(); byte !== undefined && byte !== CLOSE; byte = this.#next()) {
      if (byte === QUOTE) key = this.#text();
      else if (byte === OPEN || byte === OPEN_LIST) {
        if (before !== COLON) throw new Damage(`a member without a name at byte ${this.#at - 1}`);
        if (byte === OPEN_LIST && key === LIST) yield* this.#events();
        else this.#nested();
      }
      before = byte;
    }
  }

  *#events(): Generator<Piece> {
    for (let byte = this.#next(); byte !== CLOSE_LIST; byte = this.#next()) {
      if (byte === undefined) return;
      if (byte === COMMA) continue;
      const from = this.#at - 1;
      if (byte !== OPEN) throw new Damage(`no event where one has to be, at byte ${from}`);
      if (!this.#nested()) {
        this.torn = this.#bytes.length - from;
        return;
      }
      this.wholeTo = this.#at;
      yield { from, to: this.#at };
    }
    this.isOpen = false;
  }

  /** The next byte that is no space. */
  #next(): number | undefined {
    while (spaces.has(this.#bytes[this.#at])) this.#at++;
    return this.#bytes[this.#at++];
  }

  /** Goes on behind a text that has begun. */
  #text(): string {
    const from = this.#at;
    this.#at = behindText(this.#bytes, from);
    return utf8.decode(this.#bytes.subarray(from, this.#at - 1));
  }

  /** Goes on behind the bracket that closes the one before; false if none does. */
  #nested(): boolean {
    const bytes = this.#bytes;
    const from = this.#at - 1;
    let depth = 1;
    let at = this.#at;
    while (depth > 0 && at < bytes.length) {
      const byte = bytes[at++];
      if (byte === QUOTE) at = behindText(bytes, at);
      else if (byte === OPEN || byte === OPEN_LIST) {
        if (++depth > DEEPEST) throw new Damage(`brackets inside more than ${DEEPEST} others at byte ${from}`);
      } else if (byte === CLOSE || byte === CLOSE_LIST) depth--;
    }
    this.#at = at;
    return depth === 0;
  }

  /** Parsed at once where they are a list, as they nearly always are. */
  #parsedTogether(events: readonly Piece[]): EventObject[] {
    const values = this.#list(events);
    return events.map(({ from, to }, i) => ({ at: from, value: values?.[i] ?? this.#parsed(from, to) }));
  }

  /** Undefined if there are not so many, or if one of them is damaged. */
  #list(events: readonly Piece[]): readonly EventObject['value'][] | undefined {
    try {
      const text = utf8.decode(this.#bytes.subarray(events[0]?.from ?? 0, events.at(-1)?.to ?? 0));
      const values = JSON.parse(`[${text}]`) as EventObject['value'][];
      return values.length === events.length ? values : undefined;
    } catch {
      return undefined;
    }
  }

  #parsed(from: number, to: number): EventObject['value'] {
    try {
      return JSON.parse(utf8.decode(this.#bytes.subarray(from, to))) as EventObject['value'];
    } catch {
      throw new Damage(`no JSON object at byte ${from}`);
    }
  }
}

function behindText(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}
