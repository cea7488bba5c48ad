import { type Addr, addr } from '../../../../base/addr.js';
import { Damage, type Fields, LEN } from '../../read/fields.js';
import { CALLSTACK, FRAME, INTERNED_DATA, INTERNED_STRING, SOURCE_LOCATION } from '../fields.js';

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
  'stopped',
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
  'kind',
  'lock',
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

  clear(): void {
    this.interned = new Interned();
  }

  /** Takes a message `InternedData`, which `fields` has been put into. */
  intern(fields: Fields, entry: Fields): void {
    while (fields.next()) {
      const { number, type } = fields;
      if (type !== LEN) continue;
      const texts = textTables[number];
      if (texts !== undefined || number === INTERNED_DATA.debugAnnotationNames) {
        const { iid = 0, str = '' } = INTERNED_STRING.read(entry, fields.from, fields.to);
        if (texts === undefined) this.interned.noteNames.set(iid, noteName(str));
        else this.interned[texts].set(iid, str);
      } else if (number === INTERNED_DATA.sourceLocations) {
        const { iid = 0, ...place } = SOURCE_LOCATION.read(entry, fields.from, fields.to);
        this.interned.places.set(iid, placeOf(place));
      } else if (number === INTERNED_DATA.frames) this.#frame(fields, entry);
      else if (number === INTERNED_DATA.callstacks) this.#callstack(fields, entry);
    }
  }

  #frame({ from, to }: Fields, entry: Fields): void {
    const { iid = 0, functionNameId = 0, sourcePathIid, lineNumber: line, relPc } = FRAME.read(entry, from, to);
    const file = sourcePathIid ? this.interned.sourcePaths.of(sourcePathIid) : undefined;
    // The writer's own number, where there is no address.
    const address = relPc === undefined || relPc === BigInt(iid) ? undefined : addr(relPc);
    this.interned.frames.set(iid, { name: this.interned.functionNames.of(functionNameId), address, file, line });
  }

  #callstack({ from, to }: Fields, entry: Fields): void {
    const { iid = 0, frameIds = [] } = CALLSTACK.read(entry, from, to);
    this.interned.callstacks.set(iid, frameIds.map((id) => this.interned.frames.of(id)).reverse());
  }
}

/** Of a SourceLocation. */
export function placeOf({ fileName: file, lineNumber: line }: ReturnType<typeof SOURCE_LOCATION.read>): Place {
  return { file, line };
}
