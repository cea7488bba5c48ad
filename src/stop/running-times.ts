import { firstWhere } from '../base/sorted.js';

/** The runs that are kept. Records that wait are of fewer. */
const mostRuns = 1 << 15;

/** A run of the guest that has ended: from when until when, and how long all runs took until then, in milliseconds. */
interface Run {
  readonly since: number;
  readonly until: number;
  readonly ran: number;
}

/** How long the guest has run, by the host's clock in milliseconds, as `performance.now` counts. */
export class RunningTimes {
  /** Ended runs so far, each of which ended in a stop. */
  runs = 0;
  #since: number | undefined;
  #ran = 0;
  readonly #ended: Run[] = [];
  /** The index of the run that was asked for last. */
  #last = 0;

  /** The guest runs from now on. */
  begin(): void {
    this.#since = performance.now();
  }

  /** It has stopped. */
  end(): void {
    const until = performance.now();
    const since = this.#since ?? until;
    this.#ran += until - since;
    this.#ended.push({ since, until, ran: this.#ran });
    this.#since = undefined;
    this.runs++;
    if (this.#ended.length >= 2 * mostRuns) this.#ended.splice(0, this.#ended.length - mostRuns);
  }

  /** How long it had run, in nanoseconds, at a moment of this run or of one before. */
  upTo(hostMs: number): number {
    const since = this.#since;
    if (since !== undefined && hostMs >= since) return (this.#ran + hostMs - since) * 1e6;
    const run = this.#ended[this.#indexAt(hostMs)];
    return ((run?.ran ?? this.#ran) + Math.min(0, hostMs - (run?.until ?? hostMs))) * 1e6;
  }

  /** The last run that had begun at a moment; the first one if none had. */
  #indexAt(hostMs: number): number {
    const runs = this.#ended;
    // Records come in order, so nearly all are of the same run as the one before.
    const last = runs[this.#last];
    const next = runs[this.#last + 1];
    if (last && last.since <= hostMs && !(next && next.since <= hostMs)) return this.#last;
    const behind = firstWhere(runs.length, (index) => (runs[index] as Run).since > hostMs);
    this.#last = Math.max(behind - 1, 0);
    return this.#last;
  }
}
