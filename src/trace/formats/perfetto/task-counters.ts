import { TRACK_DESCRIPTOR } from './fields.js';
import type { Body } from './write/body.js';
import type { PerfettoSequence } from './write/packets.js';

/** No hart has so high a number, and these take two bytes. */
export const WAITING_TRACK = 0x3ffc;
export const RUNNABLE_TRACK = 0x3ffe;

const tracks = [
  { uuid: WAITING_TRACK, name: 'tasks waiting' },
  { uuid: RUNNABLE_TRACK, name: 'tasks runnable' },
];
/** Between threads and the tracks of tasks. */
const RANK = 0x7fff_fff0;
/** Numbers whose bodies are kept. */
const mostKept = 256;

/** Counters of tasks that wait, and of those that were woken and not polled yet. A change is one packet. */
export class TaskCounters {
  readonly #sequence: PerfettoSequence;
  readonly #process: number;
  readonly #write: (track: number, time: number, body: Body) => void;
  /** What is shown, in the order of the tracks; undefined before the first packet. */
  readonly #shown: (number | undefined)[] = [undefined, undefined];
  readonly #bodies: Body[] = [];

  /** `process`: the track that has these below it. */
  constructor(sequence: PerfettoSequence, process: number, write: (track: number, time: number, body: Body) => void) {
    this.#sequence = sequence;
    this.#process = process;
    this.#write = write;
  }

  show(time: number, waiting: number, runnable: number): void {
    this.#showOne(0, time, waiting);
    this.#showOne(1, time, runnable);
  }

  #showOne(which: 0 | 1, time: number, value: number): void {
    const shown = this.#shown[which];
    // A trace without wakes has no track of runnable tasks.
    if (shown === value || (shown === undefined && value === 0)) return;
    const track = tracks[which] as (typeof tracks)[number];
    if (shown === undefined) this.#describe(track, which);
    this.#shown[which] = value;
    this.#write(track.uuid, time, this.#body(value));
  }

  #describe({ uuid, name }: (typeof tracks)[number], which: number): void {
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, uuid);
      track.uint(TRACK_DESCRIPTOR.parentUuid, this.#process);
      track.text(TRACK_DESCRIPTOR.name, name);
      track.close(track.open(TRACK_DESCRIPTOR.counter));
      track.uint(TRACK_DESCRIPTOR.siblingOrderRank, RANK + which);
    });
  }

  #body(value: number): Body {
    if (value >= mostKept) return this.#sequence.counterBody(value);
    this.#bodies[value] ??= this.#sequence.counterBody(value);
    return this.#bodies[value] as Body;
  }
}
