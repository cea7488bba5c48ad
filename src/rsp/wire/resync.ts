import type { RsptraceError } from '../../base/errors.js';

/** A question that can be asked whenever the target stands still, and whose answer nothing else looks like. */
export interface Probe {
  readonly packet: string;
  readonly isAnswer: (text: string) => boolean;
}

interface Search {
  /** Called with nothing once the place is found again, else with why it never will be. */
  readonly then: (error: RsptraceError | undefined) => void;
  /** What has led here, where it was an error. */
  readonly error: RsptraceError | undefined;
  at: number;
}

/**
 * How a link finds its place in the sequence of answers again. A stub answers in order: an unmistakable answer to the
 * last question means that no earlier answer is to come. Each probe is asked once, because nobody knows what a storm of
 * NAKs is about; the next probe comes soon enough.
 */
export class Resync {
  probes: readonly Probe[] = [];
  readonly #ask: (packet: string) => void;
  #search: Search | undefined;

  constructor(ask: (packet: string) => void) {
    this.#ask = ask;
  }

  /** The search that goes on, if any: whatever comes meanwhile is an answer of before. */
  get search(): { readonly error: RsptraceError | undefined } | undefined {
    return this.#search;
  }

  /** Asks the first probe; false when there is none, and nothing was begun. */
  begin(error: RsptraceError | undefined, then: Search['then']): boolean {
    if (this.probes.length === 0) return false;
    this.#search = { then, error, at: -1 };
    return this.next();
  }

  /** Asks the next probe, the one before it being lost; false when none is left. */
  next(): boolean {
    if (this.#search === undefined) return false;
    this.#search.at++;
    return this.#askNow();
  }

  /** True when this is the answer. */
  isAnswer(text: string): boolean {
    return this.#search !== undefined && this.probes[this.#search.at]?.isAnswer(text) === true;
  }

  /** The search is over: found, or given up. */
  end(error: RsptraceError | undefined): void {
    const search = this.#search;
    this.#search = undefined;
    search?.then(error);
  }

  #askNow(): boolean {
    const probe = this.probes[this.#search?.at ?? 0];
    if (probe === undefined) return false;
    this.#ask(probe.packet);
    return true;
  }
}
