import type { CallBegin, CallEnd, CallLost, PollBegin, PollEnd, PollLost, ThreadRef } from './events.js';

export type AnyBegin = PollBegin | CallBegin;
export type AnyEnd = PollEnd | PollLost | CallEnd | CallLost;

/** A poll or call whose end has not come yet. */
export interface OpenCall {
  readonly begin: AnyBegin;
}

/** Where an event belongs: to a thread, where that is known, else to its hart. */
export interface Track {
  readonly hart: number;
  readonly thread?: ThreadRef | undefined;
}

/**
 * The polls and calls that are open on each hart, or in each thread. They nest, so what is missing can be told: one that begins at depth 1 says that
 * every one of depth 1 and more there is over, and so does an end at depth 0. Memory grows with the depth alone.
 */
export class OpenCalls<T extends OpenCall> {
  /** By hart number. */
  readonly #harts: (T[] | undefined)[] = [];
  /** By the thread's key. */
  readonly #threads: (T[] | undefined)[] = [];
  readonly #unseen: (call: T, event: AnyBegin | AnyEnd) => void;

  /** `unseen` hears of each one that must have ended without an event, innermost first. */
  constructor(unseen: (call: T, event: AnyBegin | AnyEnd) => void) {
    this.#unseen = unseen;
  }

  begin(call: T): void {
    const { depth } = call.begin;
    let open = this.#of(call.begin);
    if (open === undefined) {
      open = [];
      this.#set(call.begin, open);
    }
    this.#drop(open, depth, call.begin);
    open.push(call);
  }

  /** What ends with this event, or undefined when its begin was not seen. */
  end(event: AnyEnd): T | undefined {
    const open = this.#of(event);
    if (open === undefined) return undefined;
    this.#drop(open, event.depth + 1, event);
    const last = innermost(open);
    if (last === undefined || last.begin.depth !== event.depth) return undefined;
    if (!isEndOf(event, last.begin)) {
      this.#drop(open, event.depth, event);
      return undefined;
    }
    open.pop();
    return last;
  }

  /** What is open where an event belongs, outermost first. */
  on(track: Track): readonly T[] {
    return this.#of(track) ?? none;
  }

  #of({ hart, thread }: Track): T[] | undefined {
    return thread ? this.#threads[thread.key] : this.#harts[hart];
  }

  #set({ hart, thread }: Track, open: T[]): void {
    if (thread) this.#threads[thread.key] = open;
    else this.#harts[hart] = open;
  }

  #drop(open: T[], depth: number, event: AnyBegin | AnyEnd): void {
    for (;;) {
      const last = innermost(open);
      if (last === undefined || last.begin.depth < depth) break;
      open.pop();
      this.#unseen(last, event);
    }
  }
}

/** Element -1 of an empty list would be looked up as a property by name, which costs as much as an event. */
export function innermost<T>(open: readonly T[]): T | undefined {
  return open.length === 0 ? undefined : open[open.length - 1];
}

const none: readonly never[] = [];

function isEndOf(event: AnyEnd, begin: AnyBegin): boolean {
  if (event.type === 'call-end' || event.type === 'call-lost') {
    // Of two threads that wait in one function the later began at another time.
    return begin.type === 'call-begin' && begin.function.key === event.function.key && begin.time === event.began;
  }
  return begin.type === 'poll-begin' && begin.future.key === event.future.key && begin.address === event.address;
}
