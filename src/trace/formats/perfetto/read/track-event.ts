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

/** A PerfSample. */
export interface PerfSample {
  readonly time: number;
  readonly cpu: number;
  readonly stack: readonly InternedFrame[];
  readonly count: number;
}

export const noArguments: readonly ArgumentValue[] = [];

export class Current implements TrackEvent {
  type = 0;
  time = 0;
  track: Uuid = 0;
  category = '';
  name = '';
  place: Place | undefined;
  flow: number | undefined;
  counter: number | undefined;
  readonly notes: NoteValue[] = new Array(noteNames.length).fill(undefined);
  /** A new list for each event that has some: events keep theirs. */
  arguments: readonly ArgumentValue[] = noArguments;
  /** Which of `notes` are set: so many are valid, because emptying an array is slow. */
  readonly noted: number[] = [];
  notedCount = 0;

  clear(): void {
    this.type = 0;
    this.category = '';
    this.name = '';
    this.place = undefined;
    this.flow = undefined;
    this.counter = undefined;
    for (let i = 0; i < this.notedCount; i++) this.notes[this.noted[i] as number] = undefined;
    this.notedCount = 0;
    this.arguments = noArguments;
  }
}
