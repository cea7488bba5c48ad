import type { AnyBegin, AnyEnd, ThreadRef, TraceEvent } from './events.js';

/** Whether a call or a poll begins. */
export function isBegin(event: TraceEvent): event is AnyBegin {
  return event.type === 'call-begin' || event.type === 'poll-begin';
}

/** Whether one ends, seen or not. */
export function isEnd(event: TraceEvent): event is AnyEnd {
  // `'began' in event` takes as long as all else that most sinks do.
  const { type } = event;
  return type === 'poll-end' || type === 'call-end' || type === 'poll-lost' || type === 'call-lost';
}

/** A poll or call whose end has not come yet. */
export interface OpenCall {
  readonly begin: AnyBegin;
}

/** An event's track: a thread, if that is known, else its hart. */
export interface Track {
  readonly hart: number;
  readonly thread?: ThreadRef | undefined;
}

/** The polls and calls that are open on each hart, or in each thread, as they began. Memory grows with their number. */
export class OpenCalls<T extends OpenCall> {
  /** By hart number. */
  readonly #harts: T[][] = [];
  /** By the thread's key. */
  readonly #threads: T[][] = [];

  begin(call: T): void {
    const { hart, thread } = call.begin;
    const open = this.#of(call.begin);
    if (open) open.push(call);
    else if (thread) this.#threads[thread.key] = [call];
    else this.#harts[hart] = [call];
  }

  /** The begin of what ends with this event; undefined if it was not seen. */
  end({ begin }: AnyEnd): T | undefined {
    const open = begin && this.#of(begin);
    if (!begin || !open) return undefined;
    const last = innermost(open);
    if (last?.begin === begin) return open.pop();
    const at = open.findLastIndex((call) => call.begin === begin);
    return at < 0 ? undefined : open.splice(at, 1)[0];
  }

  /** What is open and began with this event. */
  of(begin: AnyBegin | undefined): T | undefined {
    const open = begin && this.#of(begin);
    if (!open) return undefined;
    const last = innermost(open);
    return last?.begin === begin ? last : open.findLast((call) => call.begin === begin);
  }

  /** Removes what began on the same track after an event that is open, innermost first. */
  takeAfter(begin: AnyBegin): readonly T[] {
    const open = this.#of(begin);
    if (!open || innermost(open)?.begin === begin) return none;
    const at = open.findLastIndex((call) => call.begin === begin);
    return at < 0 ? none : open.splice(at + 1).reverse();
  }

  /** What is open where an event belongs, as it began. */
  on(track: Track): readonly T[] {
    return this.#of(track) ?? none;
  }

  /** Everything that is open, track by track. */
  all(): T[] {
    return [...Object.values(this.#harts), ...Object.values(this.#threads)].flat();
  }

  #of({ hart, thread }: Track): T[] | undefined {
    return thread ? this.#threads[thread.key] : this.#harts[hart];
  }
}

/** Element -1 of an empty list would be looked up as a property by name, which costs as much as an event. */
function innermost<T>(open: readonly T[]): T | undefined {
  return open.length === 0 ? undefined : open[open.length - 1];
}

/** Whether events belong to one track. */
export function isOnTrack(one: Track, other: Track): boolean {
  return one.thread || other.thread ? one.thread === other.thread : one.hart === other.hart;
}

const none: readonly never[] = [];
