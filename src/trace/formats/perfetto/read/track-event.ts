import type { Addr } from '../../../../base/addr.js';
import type { ArgumentValue } from '../../../events/events.js';
import type { Uuid } from './descriptors.js';
import { type InternedFrame, noteNames, type Place } from './sequence.js';

export type NoteValue = string | Addr | boolean | number | undefined;

/** One TrackEvent: valid until the next event. */
export interface TrackEvent {
  /** TrackEvent.Type. */
  readonly type: number;
  readonly time: number;
  readonly track: Uuid;
  readonly category: string;
  readonly name: string;
  readonly place: Place | undefined;
  /** The first of its flows. */
  readonly flow: number | undefined;
  readonly counter: number | undefined;
  /** The annotations that rsptrace writes, by `NOTE`. */
  readonly notes: readonly NoteValue[];
  /** All others, `arg_` taken off. */
  readonly arguments: readonly ArgumentValue[];
}

export interface PerfSample {
  readonly time: number;
  readonly cpu: number;
  readonly stack: readonly InternedFrame[];
  readonly count: number;
}

export const noArguments: readonly ArgumentValue[] = [];

export function valueText(value: NonNullable<NoteValue>): string {
  return typeof value === 'bigint' ? `0x${value.toString(16)}` : String(value);
}

/** Also those that are called as one that rsptrace writes: a function, or a note of another program, may have any name. */
export function allArguments({ arguments: others, notes }: TrackEvent): readonly ArgumentValue[] {
  const named = noteNames.flatMap((name, id) => {
    const value = notes[id];
    return value === undefined ? [] : [{ name, value: valueText(value) }];
  });
  return named.length === 0 ? others : [...others, ...named];
}

class Notes extends Array<NoteValue> {
  /** Which of them are set: so many are valid, because emptying an array is slow. */
  readonly #noted: number[] = [];
  #count = 0;

  set(id: number, value: NoteValue): void {
    this[id] = value;
    this.#noted[this.#count++] = id;
  }

  clear(): void {
    for (let i = 0; i < this.#count; i++) this[this.#noted[i] as number] = undefined;
    this.#count = 0;
  }
}

export class Current implements TrackEvent {
  type = 0;
  time = 0;
  track: Uuid = 0;
  category = '';
  name = '';
  place: Place | undefined;
  flow: number | undefined;
  counter: number | undefined;
  readonly notes: Notes = new Notes(noteNames.length).fill(undefined) as Notes;
  /** A new list for each event that has some: events keep theirs. */
  arguments: readonly ArgumentValue[] = noArguments;

  clear(): void {
    this.type = 0;
    this.category = '';
    this.name = '';
    this.place = undefined;
    this.flow = undefined;
    this.counter = undefined;
    this.notes.clear();
    this.arguments = noArguments;
  }
}
