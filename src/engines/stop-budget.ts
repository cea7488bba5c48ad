import type { Addr } from '../base/addr.js';

/**
 * So many stops may come at once, and so many more each time that probes are switched off. Then so many a second, and
 * no more than what takes this share of the time. A stop of more milliseconds than these counts as several: a server
 * may stand for half a second, not for two.
 */
const budget = { atOnce: 200, more: 25, aSecond: 50, share: 0.01, ms: 2 };
/** The same for runs that are to be alike: so many stops in all, and so many more whenever probes are switched off. */
const repeatable = { inAll: 1000, more: 250 };

/** A probe with less than this share of the most hits is not switched off with the one that has these. */
const leastShare = 1 / 8;

/**
 * What the probes that stop may cost beside probes that do not: a token bucket over all of them. When it is empty, the
 * probe with the most hits since it was last full is to be switched off. When it is empty again before it was full,
 * two are, then four, eight... So thousands of probes cost no more than a few do.
 */
export class StopBudget {
  readonly #isRepeatable: boolean;
  #left: number;
  #begun: Moment | undefined;
  #last: Moment | undefined;
  #stops = 0;
  /** So many are switched off the next time. */
  #next = 1;
  readonly #hits = new Map<string | Addr, number>();

  /** `isRepeatable`: the host's time does not matter, because two runs are to be alike. */
  constructor(isRepeatable = false) {
    this.#isRepeatable = isRepeatable;
    this.#left = isRepeatable ? repeatable.inAll : budget.atOnce;
  }

  /**
   * The target has stopped at a hit of the probe of this name, or where a call returns. That may be another call than
   * the open one that is waited for. Returns what is to stop it no more: nothing while the budget is not spent.
   */
  spend(at: string | Addr, now: Moment): readonly (string | Addr)[] {
    const price = this.#isRepeatable ? 1 : this.#priceBy(now);
    this.#left -= price;
    this.#hits.set(at, (this.#hits.get(at) ?? 0) + 1);
    this.#stops++;
    return this.#left < 0 ? this.#takeMostHit() : [];
  }

  /** What the stop at this time costs, after what was gained until then. */
  #priceBy(now: Moment): number {
    const price = this.#price(now);
    this.#left = Math.min(budget.atOnce, this.#left + this.#gained(now));
    if (this.#left === budget.atOnce) {
      this.#hits.clear();
      this.#next = 1;
    }
    return price;
  }

  /** What the last stop counts for, and at least one. */
  #price(now: Moment): number {
    const last = this.#last ?? now;
    return Math.max(1, (now.hostMs - last.hostMs - (now.ranMs - last.ranMs)) / budget.ms);
  }

  /** Stops that may be made because time has passed. */
  #gained(now: Moment): number {
    this.#begun ??= now;
    const { hostMs } = this.#last ?? now;
    this.#last = now;
    const stoodMs = now.hostMs - this.#begun.hostMs - (now.ranMs - this.#begun.ranMs);
    const aSecond = stoodMs > 0 ? (1000 * budget.share * this.#stops) / stoodMs : budget.aSecond;
    return ((now.hostMs - hostMs) / 1000) * Math.min(budget.aSecond, aSecond);
  }

  /** The others may show what they cost without these. */
  #takeMostHit(): readonly (string | Addr)[] {
    const byHits = [...this.#hits].sort(([, one], [, other]) => other - one);
    const least = (byHits[0]?.[1] ?? 0) * leastShare;
    const most = byHits.slice(0, this.#next).filter(([, hits]) => hits >= least);
    for (const [at] of most) this.#hits.delete(at);
    this.#next *= 2;
    this.#left = this.#isRepeatable ? repeatable.more : budget.more;
    return most.map(([at]) => at);
  }
}

/** A moment, in milliseconds of the host. */
interface Moment {
  readonly hostMs: number;
  /** How long the target has run, in milliseconds. */
  readonly ranMs: number;
}
