import type { CallBegin, CallEnd, CallLost, PollBegin, PollEnd, PollLost } from './events.js';

export type AnyBegin = PollBegin | CallBegin;
export type AnyEnd = PollEnd | PollLost | CallEnd | CallLost;

/** A poll or call whose end has not come yet. */
export interface OpenCall {
  readonly begin: AnyBegin;
}

/**
 * The polls and calls that are open on each hart. They nest, so what is missing can be told: one that begins at depth 1 says that
 * every one of depth 1 and more on that hart is over, and so does an end at depth 0. Memory grows with the depth alone.
 */
export class OpenCalls<T extends OpenCall> {
  /** By hart number. */
  readonly #harts: (T[] | undefined)[] = [];
  readonly #unseen: (call: T, event: AnyBegin | AnyEnd) => void;

  /** `unseen` hears of each one that must have ended without an event, innermost first. */
  constructor(unseen: (call: T, event: AnyBegin | AnyEnd) => void) {
    this.#unseen = unseen;
  }

  begin(call: T): void {
    const { hart, depth } = call.begin;
    let open = this.#harts[hart];
    if (open === undefined) {
      open = [];
      this.#harts[hart] = open;
    }
    this.#drop(open, depth, call.begin);
    open.push(call);
  }

  /** What ends with this event, or undefined when its begin was not seen. */
  end(event: AnyEnd): T | undefined {
    const open = this.#harts[event.hart];
    if (open === undefined) return undefined;
    this.#drop(open, event.depth + 1, event);
    const last = open[open.length - 1];
    if (last === undefined || last.begin.depth !== event.depth) return undefined;
    if (!isEndOf(event, last.begin)) {
      this.#drop(open, event.depth, event);
      return undefined;
    }
    open.pop();
    return last;
  }

  /** What is open on a hart, outermost first. */
  on(hart: number): readonly T[] {
    return this.#harts[hart] ?? none;
  }

  #drop(open: T[], depth: number, event: AnyBegin | AnyEnd): void {
    for (;;) {
      const last = open[open.length - 1];
      if (last === undefined || last.begin.depth < depth) break;
      open.pop();
      this.#unseen(last, event);
    }
  }
}

const none: readonly never[] = [];

function isEndOf(event: AnyEnd, begin: AnyBegin): boolean {
  if (event.type === 'call-end' || event.type === 'call-lost') {
    // Of two threads that wait in one function the later began at another time.
    return begin.type === 'call-begin' && begin.function.key === event.function.key && begin.time === event.began;
  }
  return begin.type === 'poll-begin' && begin.future.key === event.future.key && begin.address === event.address;
}
