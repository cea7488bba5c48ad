import type { PollBegin } from '../../../events/events.js';
import type { Body } from './body.js';

type OfFuture = Pick<PollBegin, 'root' | 'future'>;

/** Bodies that are kept for one Future in one kind of task; a full list is emptied. */
const waysKept = 96;

/** A body, and by what it is found again. */
interface Kept<A, B> {
  readonly one: A;
  readonly other: B;
  readonly body: Body;
}

/**
 * Bodies of one kind of event of Futures. A Future is polled in the same few ways over and over, so they are found by
 * the identity of what the events name.
 */
export class KeptBodies<E extends OfFuture, A, B> {
  readonly #make: (event: E, one: A, other: B) => Body;
  /** By the key of the task's Future, then by that of the event's. */
  readonly #all: (Kept<A, B>[] | undefined)[][] = [];

  constructor(make: (event: E, one: A, other: B) => Body) {
    this.#make = make;
  }

  /** That of an event with these two, which are all of it that is in the body, next to the Futures. */
  of(event: E, one: A, other: B): Body {
    const kept = this.#all[event.root.future.key]?.[event.future.key];
    if (kept !== undefined) {
      for (let i = 0; i < kept.length; i++) {
        const each = kept[i] as Kept<A, B>;
        if (each.one === one && each.other === other) return each.body;
      }
    }
    return this.#add(event, one, other);
  }

  #add(event: E, one: A, other: B): Body {
    const body = this.#make(event, one, other);
    const { root, future } = event;
    let ofTask = this.#all[root.future.key];
    if (ofTask === undefined) {
      ofTask = [];
      this.#all[root.future.key] = ofTask;
    }
    const kept = ofTask[future.key] ?? [];
    ofTask[future.key] = kept;
    if (kept.length === waysKept) kept.length = 0;
    kept.push({ one, other, body });
    return body;
  }
}
