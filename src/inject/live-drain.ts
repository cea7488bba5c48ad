import type { StopObserver } from '../calls/index.js';
import { DigestPace, restTimes } from './digest-pace.js';
import type { DrainedRecords } from './drained-records.js';
import type { TargetEngine } from './target-engine.js';

/** Reads the ring and emits the events of its records. */
export interface Drain extends StopObserver {
  /** Nothing is read any more unless it is asked for. */
  stop(): void;
}

/** What is polled: a {@link TargetEngine} whose ring is in shared memory. */
export interface Drainable extends Pick<TargetEngine, 'drainLive' | 'filled' | 'drainStopped' | 'renew'> {
  readonly drained: Pick<DrainedRecords, 'hasRoom' | 'digest' | 'undigested'>;
}

/** How long to wait between two reads of a ring that was nearly empty, in milliseconds. */
const idleMs = 1;
/**
 * How long records are digested between two reads of the ring, in milliseconds. Soon after a stop there may be another
 * one, for which the target would stand so long.
 */
const digestMs = { soon: 0.25, later: 2 };
/** What is soon after a stop, in milliseconds. */
const soonMs = 20;
/** A ring that fills by this share between two reads is read, and nothing else is done. */
const busy = 0.25;
/** More records than this wait for no core: it takes some 20 seconds to understand them. */
const mostUndigested = 8_000_000;

/** Polls the ring in shared memory while the target runs. */
export class LiveDrain implements Drain {
  readonly #target: Drainable;
  readonly #onError: (thrown: unknown) => void;
  readonly #digestsAlways: boolean;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #stands = false;
  /** When the target last went on. */
  #since = Number.NEGATIVE_INFINITY;
  readonly #pace: Pick<DigestPace, 'rests' | 'digested'>;

  /**
   * Begins to poll. An error ends it and is given to `onError`. `digestsAlways`: also while the ring fills fast, when
   * records are else only kept for later.
   */
  constructor(
    target: Drainable,
    onError: (thrown: unknown) => void,
    digestsAlways = false,
    pace: Pick<DigestPace, 'rests' | 'digested'> = new DigestPace(restTimes.recorded),
  ) {
    this.#target = target;
    this.#onError = onError;
    this.#digestsAlways = digestsAlways;
    this.#pace = pace;
    this.#look();
  }

  /** While the target stands, its stop is all that is worked on: each answer of the stub would wait for records. */
  runs(): () => void {
    // However long the target has stood. It may have ended meanwhile, which the resume finds.
    try {
      this.#target.renew(true);
    } catch (thrown) {
      this.#onError(thrown);
    }
    if (this.#stands) this.#immediate = setImmediate(() => this.#look());
    this.#stands = false;
    this.#since = performance.now();
    return () => {
      this.#stands = true;
      this.#pause();
    };
  }

  async handles(): Promise<boolean> {
    return false;
  }

  async stopped(emits: boolean): Promise<void> {
    await this.#target.drainStopped({ all: emits });
  }

  stop(): void {
    this.#pause();
  }

  #pause(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
  }

  #look(): void {
    let more = false;
    try {
      more = this.#target.drainLive() || this.#fills();
      if (this.#digestsAlways || !(more || this.#rests)) more = this.#digest() || more;
    } catch (thrown) {
      this.#onError(thrown);
      return;
    }
    // No timer: it would fire a millisecond later, and the target waits while the ring is full.
    if (more) this.#immediate = setImmediate(() => this.#look());
    else this.#timer = setTimeout(() => this.#look(), idleMs);
  }

  /** Returns true if there is more to be done at once. */
  #digest(): boolean {
    const began = performance.now();
    const more = this.#target.drained.digest(this.#digestMs);
    if (more) this.#pace.digested(began, performance.now());
    return more && !this.#rests;
  }

  get #rests(): boolean {
    const { hasRoom, undigested } = this.#target.drained;
    const mayWait = hasRoom && undigested < mostUndigested && !this.#digestsAlways;
    return mayWait && this.#pace.rests(performance.now());
  }

  get #digestMs(): number {
    return performance.now() - this.#since < soonMs ? digestMs.soon : digestMs.later;
  }

  /** The ring is worth another read at once. What was read may wait too long already: then it must be digested. */
  #fills(): boolean {
    return this.#target.filled > busy && this.#target.drained.hasRoom;
  }
}
