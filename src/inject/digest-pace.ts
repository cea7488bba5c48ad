/*
 * How much of the time records are digested while the target runs. Where cores are short, each millisecond of digesting
 * is one that the target does not have. Records wait in a file then, so the target goes first:
 *
 *   an idle core      records are digested whenever the ring needs no reading
 *   cores are short   a rest follows, so many times as long as the digesting took
 */
import { readFileSync } from 'node:fs';

/** How long one look at the waits counts, in milliseconds. */
const windowMs = 50;
/** A thread on a machine with an idle core waits less than this share of the time in which it could run. */
const longWait = 0.1;
/**
 * A rest lasts so many times as long as what it follows. `recorded`: while the target is recorded; `shown`: the same,
 * and somebody sees events as they come; `left`: when the target is left.
 */
export const restTimes = { recorded: 15, shown: 1, left: 1 };

/**
 * Whether this thread waits for a core often: then a target on this machine probably waits too. Linux counts for each
 * thread how long it ran and how long it could have run and had no core, in nanoseconds (Documentation/scheduler/
 * sched-stats.rst, /proc/PID/schedstat).
 */
class CoreWait {
  readonly #read: () => string;
  #counts: readonly number[] | undefined;
  #at = Number.NEGATIVE_INFINITY;
  #isLong = false;

  constructor(read: () => string) {
    this.#read = read;
  }

  /** In the last {@link windowMs}; false where the system does not say. */
  isLong(now: number): boolean {
    if (now - this.#at < windowMs) return this.#isLong;
    const before = this.#counts;
    const after = this.#now();
    const [ran = 0, waited = 0] = after.map((count, i) => count - (before?.[i] ?? Number.NaN));
    this.#isLong = waited > longWait * (ran + waited);
    this.#counts = after;
    this.#at = now;
    return this.#isLong;
  }

  #now(): number[] {
    try {
      return this.#read().split(' ').map(Number);
    } catch {
      return [];
    }
  }
}

export class DigestPace {
  readonly #cores: CoreWait;
  readonly #times: number;
  #restsUntil = Number.NEGATIVE_INFINITY;

  /** `times`: one of {@link restTimes}. `read`: this thread's schedstat. */
  constructor(times: number, read: () => string = () => readFileSync('/proc/thread-self/schedstat', 'latin1')) {
    this.#times = times;
    this.#cores = new CoreWait(read);
  }

  /** Nothing should be digested now, in milliseconds as `performance.now` counts. */
  rests(now: number): boolean {
    return now < this.#restsUntil;
  }

  /** Until nothing speaks against digesting more. */
  async rest(): Promise<void> {
    const ms = this.#restsUntil - performance.now();
    await new Promise<void>((done) => (ms > 0 ? setTimeout(done, ms) : setImmediate(done)));
  }

  /** Records were digested between these moments. */
  digested(began: number, ended: number): void {
    if (this.#cores.isLong(ended)) this.#restsUntil = ended + this.#times * (ended - began);
  }
}
