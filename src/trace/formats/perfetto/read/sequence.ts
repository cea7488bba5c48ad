import { type Addr, addr } from '../../../../base/addr.js';
import { Damage, type Fields, LEN, VARINT } from '../../read/fields.js';
import { CALLSTACK, FRAME, INTERNED_DATA, SOURCE_LOCATION } from '../fields.js';

export interface Place {
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** A frame of a call stack; one object an iid, so identity is a key. */
export interface InternedFrame extends Place {
  readonly name: string;
  readonly address: Addr | undefined;
}

/** The name of an annotation, and its number among those that rsptrace writes: see {@link noteNames}. */
export interface NoteName {
  /** Without `arg_`, which rsptrace puts before the names of arguments. */
  readonly argument: string;
  /** -1: none of ours. */
  readonly id: number;
}

/** The annotations that have a meaning to the reader, in the order of their numbers. */
export const noteNames = [
  'address',
  'instance',
  'task',
  'task_address',
  'state_before',
  'state_after',
  'result',
  'await_chain',
  'stack',
  'derived',
  'returned',
  'hart',
  'began',
  'was_lost',
  'inlined_polls',
  'hides_drops',
  'implied',
  'future',
  'wait',
  'watch',
  'access',
  'old',
  'value',
  'changed',
  'by',
  'inlined',
  'pc',
  'type',
  'function',
  'waker',
] as const;
type Note = (typeof noteNames)[number];

/** By its name, the number of each. */
export const NOTE = Object.fromEntries(noteNames.map((name, id) => [name, id])) as Readonly<Record<Note, number>>;

export function noteName(text: string): NoteName {
  return { argument: text.replace(/^arg_/, ''), id: (NOTE as Readonly<Record<string, number>>)[text] ?? -1 };
}

export interface SequenceClock {
  /** Where it is, in the trace's nanoseconds. */
  time: number;
  /** Nanoseconds a tick. */
  readonly unit: number;
}

/** Things by their iids. */
class Table<T> extends Map<number, T> {
  readonly #what: string;

  constructor(what: string) {
    super();
    this.#what = what;
  }

  /** What is asked for in vain is damage. */
  of(iid: number): T {
    const value = this.get(iid);
    if (value === undefined) throw new Damage(`no ${this.#what} has the number ${iid}`);
    return value;
  }
}

class Interned {
  readonly categories = new Table<string>('category');
  readonly names = new Table<string>('event name');
  readonly noteNames = new Table<NoteName>('annotation name');
  readonly values = new Table<string>('annotation value');
  readonly places = new Table<Place>('source location');
  readonly functionNames = new Table<string>('function name');
  readonly sourcePaths = new Table<string>('source path');
  readonly frames = new Table<InternedFrame>('frame');
  /** The innermost frame first. */
  readonly callstacks = new Table<readonly InternedFrame[]>('call stack');
}

/** Tables of texts, by the fields of `InternedData`. */
const textTables: Readonly<
  Record<number, 'categories' | 'names' | 'values' | 'functionNames' | 'sourcePaths' | undefined>
> = {
  [INTERNED_DATA.eventCategories]: 'categories',
  [INTERNED_DATA.eventNames]: 'names',
  [INTERNED_DATA.debugAnnotationStringValues]: 'values',
  [INTERNED_DATA.functionNames]: 'functionNames',
  [INTERNED_DATA.sourcePaths]: 'sourcePaths',
};

/** One sequence of packets. */
export class Sequence {
  /** Until the sequence clears it. */
  interned = new Interned();
  /** The track of events that name none. */
  track: number | bigint = 0;
  /** The clock of packets that name none. */
  clock = 0;
  /** Clocks of this sequence alone, whose timestamps are distances from the one before: by their numbers. */
  readonly clocks = new Map<number, SequenceClock>();
  #hasChanged = false;

  clear(): void {
    this.interned = new Interned();
  }

  /** Takes a message `InternedData`, which `fields` has been put into. True if an iid means something else now. */
  intern(fields: Fields, entry: Fields): boolean {
    this.#hasChanged = false;
    while (fields.next()) {
      const { number, type } = fields;
      if (type !== LEN) continue;
      const texts = textTables[number];
      if (texts !== undefined || number === INTERNED_DATA.debugAnnotationNames) {
        const { iid, text } = readEntry(fields, entry);
        if (texts === undefined) this.#set(this.interned.noteNames, iid, noteName(text));
        else this.#set(this.interned[texts], iid, text);
      } else if (number === INTERNED_DATA.sourceLocations) this.#place(fields, entry);
      else if (number === INTERNED_DATA.frames) this.#frame(fields, entry);
      else if (number === INTERNED_DATA.callstacks) this.#callstack(fields, entry);
    }
    return this.#hasChanged;
  }

  #set<T>(table: Table<T>, iid: number, value: T): void {
    if (table.has(iid)) this.#hasChanged = true;
    table.set(iid, value);
  }

  #place(fields: Fields, entry: Fields): void {
    let iid = 0;
    entry.enter(fields.from, fields.to);
    const place: { file: string | undefined; line: number | undefined } = { file: undefined, line: undefined };
    while (entry.next()) {
      if (entry.number === SOURCE_LOCATION.iid && entry.type === VARINT) iid = entry.value();
      else readPlaceField(entry, place);
    }
    this.#set(this.interned.places, iid, place);
  }

  #frame(fields: Fields, entry: Fields): void {
    let [iid, name, path] = [0, 0, 0];
    let line: number | undefined;
    let address: Addr | undefined;
    entry.enter(fields.from, fields.to);
    while (entry.next()) {
      if (entry.type !== VARINT) continue;
      if (entry.number === FRAME.iid) iid = entry.value();
      else if (entry.number === FRAME.functionNameId) name = entry.value();
      else if (entry.number === FRAME.sourcePathIid) path = entry.value();
      else if (entry.number === FRAME.lineNumber) line = entry.value();
      else if (entry.number === FRAME.relPc) address = addr(entry.wide());
    }
    const file = path === 0 ? undefined : this.interned.sourcePaths.of(path);
    // The writer's own number, where there is no address.
    if (address === BigInt(iid)) address = undefined;
    this.interned.frames.set(iid, { name: this.interned.functionNames.of(name), address, file, line });
  }

  #callstack(fields: Fields, entry: Fields): void {
    let iid = 0;
    const frames: InternedFrame[] = [];
    entry.enter(fields.from, fields.to);
    while (entry.next()) {
      if (entry.type !== VARINT) continue;
      if (entry.number === CALLSTACK.iid) iid = entry.value();
      else if (entry.number === CALLSTACK.frameIds) frames.push(this.interned.frames.of(entry.value()));
    }
    this.interned.callstacks.set(iid, frames.reverse());
  }
}

/** One field of a SourceLocation. */
export function readPlaceField(entry: Fields, place: { file: string | undefined; line: number | undefined }): void {
  if (entry.number === SOURCE_LOCATION.fileName && entry.type === LEN) place.file = entry.text();
  else if (entry.number === SOURCE_LOCATION.lineNumber && entry.type === VARINT) place.line = entry.value();
}

/** EventName, EventCategory, DebugAnnotationName, InternedString. */
const ENTRY = { iid: 1, text: 2 };

function readEntry(fields: Fields, entry: Fields): { iid: number; text: string } {
  let iid = 0;
  let text = '';
  entry.enter(fields.from, fields.to);
  while (entry.next()) {
    if (entry.number === ENTRY.iid && entry.type === VARINT) iid = entry.value();
    else if (entry.number === ENTRY.text && entry.type === LEN) text = entry.text();
  }
  return { iid, text };
}
