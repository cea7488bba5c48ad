import type { RsptraceError } from '../../base/errors.js';

/** A request that is possible whenever the target is stopped, and whose answer looks like no other. */
export interface Probe {
  readonly packet: string;
  readonly isAnswer: (text: string) => boolean;
}

interface Search {
  /** Called without an argument once the place is found again, else with the reason why it never will be. */
  readonly then: (error: RsptraceError | undefined) => void;
  /** The error that led here, if it was one. */
  readonly error: RsptraceError | undefined;
  at: number;
}

/**
 * Finds a link's place in the sequence of answers again. A stub answers in order, so an unmistakable answer to the
 * last request means that no earlier answer is due. Each probe is sent once, because it is not known which packet a
 * storm of NAKs is for; the next probe follows soon enough.
 */
export class Resync {
  probes: readonly Probe[] = [];
  readonly #ask: (packet: string) => void;
  #search: Search | undefined;
  /** Writes that wait until the place is found. */
  readonly #held: (() => void)[] = [];

  constructor(ask: (packet: string) => void) {
    this.#ask = ask;
  }

  /** The present search, if any: whatever comes meanwhile is an earlier answer. */
  get search(): { readonly error: RsptraceError | undefined } | undefined {
    return this.#search;
  }

  /** Sends the first probe; false if there is none, and nothing was begun. */
  begin(error: RsptraceError | undefined, then: Search['then']): boolean {
    if (this.probes.length === 0) return false;
    this.#search = { then, error, at: -1 };
    return this.next();
  }

  /** Sends the next probe, because the one before is lost; false if none is left. */
  next(): boolean {
    if (this.#search === undefined) return false;
    const probe = this.probes[++this.#search.at];
    if (probe !== undefined) this.#ask(probe.packet);
    return probe !== undefined;
  }

  /** Takes what has come; false if it is not the answer. */
  take(text: string): boolean {
    if (this.#search === undefined || this.probes[this.#search.at]?.isAnswer(text) !== true) return false;
    this.end(undefined);
    this.release();
    return true;
  }

  /** The search is over: found, or given up. */
  end(error: RsptraceError | undefined): void {
    const search = this.#search;
    this.#search = undefined;
    search?.then(error);
  }

  /** Keeps a write for {@link release}. */
  hold(send: () => void): void {
    this.#held.push(send);
  }

  /** Sends what was held back. */
  release(): void {
    for (const send of this.#held.splice(0)) send();
  }
}
