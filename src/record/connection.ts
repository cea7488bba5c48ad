import type { Logger } from '../base/logger.js';
import type { Session, Standing } from '../rsp/index.js';
import type { OtherCounts, StopEngine, Watchpoints } from '../stop/index.js';
import type { GuestNanos } from '../trace/index.js';

/** What reaches the target, and stops it. */
interface Link {
  readonly session: Session;
  readonly engine: StopEngine;
  readonly watches: Watchpoints;
}

/** What is counted over all links. */
type Totals = Pick<Connection, 'stops' | 'ranNs' | 'foreignHits' | 'wasHit' | 'others' | 'standing'>;

function added<K>(one: ReadonlyMap<K, number>, other: ReadonlyMap<K, number>): Map<K, number> {
  const all = new Map(one);
  for (const [key, count] of other) all.set(key, (all.get(key) ?? 0) + count);
  return all;
}

/**
 * The one owner of a recording's connection to its target. After a reconnect that is another session, with a stop
 * engine of its own, so nobody else keeps them.
 */
export class Connection {
  #link: Link | undefined;
  /** Totals of the links before this one. */
  #earlier: Totals = {
    ...{ stops: 0, ranNs: 0, foreignHits: new Map<bigint, number>(), wasHit: false },
    ...{ others: undefined, standing: { allMs: 0, longestMs: 0 } },
  };

  /** From now on the target is reached this way. */
  open(link: Link): void {
    if (this.#link) {
      const { stops, ranNs, foreignHits, wasHit, others, standing } = this;
      this.#earlier = { stops, ranNs, foreignHits, wasHit, others, standing };
    }
    this.#link = link;
  }

  get #open(): Link {
    if (!this.#link) throw new TypeError('the target is not connected');
    return this.#link;
  }

  get session(): Session {
    return this.#open.session;
  }

  get engine(): StopEngine {
    return this.#open.engine;
  }

  get watches(): Watchpoints {
    return this.#open.watches;
  }

  get stops(): number {
    return this.#earlier.stops + this.engine.stops;
  }

  /** How long the target has run, in nanoseconds of the host. */
  get ranNs(): number {
    return this.#earlier.ranNs + this.engine.runningTime();
  }

  /** Stops at a probe's address in other code, by address. */
  get foreignHits(): Map<bigint, number> {
    return added(this.#earlier.foreignHits, this.engine.foreignHits);
  }

  /** A probe's place was reached. */
  get wasHit(): boolean {
    return this.#earlier.wasHit || this.engine.wasHit;
  }

  /** Stops of further programs; undefined without any. */
  get others(): OtherCounts | undefined {
    const [{ others: before }, { others: now }] = [this.#earlier, this.engine];
    if (!before || !now) return now;
    return { stops: added(before.stops, now.stops), untold: before.untold + now.untold };
  }

  get standing(): Pick<Standing, 'allMs' | 'longestMs'> {
    const [{ standing: before }, { standing: now }] = [this.#earlier, this.session];
    return { allMs: before.allMs + now.allMs, longestMs: Math.max(before.longestMs, now.longestMs) };
  }

  /** The time of the trace's clock; undefined if the target cannot be asked. */
  async time(): Promise<GuestNanos | undefined> {
    const { clock } = this.engine;
    if (!clock || this.session.state.kind !== 'idle') return undefined;
    const batch = this.session.batch();
    const time = clock.request(batch);
    await batch.send();
    return time() as GuestNanos;
  }

  /** Makes the run of the target end. */
  interrupt(logger: Logger): void {
    // A wire that breaks here breaks `run` too, which reports it.
    this.engine.stop().catch((thrown: unknown) => logger.debug({ error: String(thrown) }, 'could not interrupt'));
  }

  /**
   * Takes everything out of the target and lets it run on, unless it `stays`; where the wire is gone there is nothing
   * left to do.
   */
  async leave(logger: Logger, stays = false): Promise<void> {
    const { session } = this;
    try {
      if (stays && session.state.kind === 'idle' && session.state.stop.kind === 'signal')
        await session.clearBreakpoints();
      else await session.detach();
    } catch (thrown) {
      logger.warn({ error: String(thrown) }, 'could not detach: breakpoints may be left in the target');
    }
  }
}
