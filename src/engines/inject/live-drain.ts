import type { Drain } from './drain.js';
import type { TargetEngine } from './target-engine.js';

/** What is polled: a {@link TargetEngine} whose ring is in shared memory. */
export type Drainable = Pick<TargetEngine, 'drainLive' | 'hasRoom' | 'filled' | 'digest' | 'drainStopped'>;

/** How long to wait between two reads of a ring that was nearly empty, in milliseconds. */
const idleMs = 1;
/** How long records are digested between two reads of the ring, in milliseconds. */
const digestMs = 2;
/** A ring that fills by this share between two reads is read, and nothing else is done. */
const busy = 0.25;

/** Polls the ring in shared memory while the target runs. */
export class LiveDrain implements Drain {
  readonly #target: Drainable;
  readonly #onError: (thrown: unknown) => void;
  readonly #digestsAlways: boolean;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;

  /**
   * Begins to poll. An error ends it and is given to `onError`. `digestsAlways`: also while the ring fills fast, when
   * records are else only kept for later.
   */
  constructor(target: Drainable, onError: (thrown: unknown) => void, digestsAlways = false) {
    this.#target = target;
    this.#onError = onError;
    this.#digestsAlways = digestsAlways;
    this.#look();
  }

  runs(): () => void {
    return () => {};
  }

  async handles(): Promise<boolean> {
    return false;
  }

  async stopped(tells: boolean): Promise<void> {
    await this.#target.drainStopped({ all: tells, pending: tells, later: !tells });
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
  }

  #look(): void {
    let more = false;
    try {
      more = this.#target.drainLive() || this.#fills();
      if (!more || this.#digestsAlways) more = this.#target.digest(digestMs) || more;
    } catch (thrown) {
      this.#onError(thrown);
      return;
    }
    // No timer: it would fire a millisecond later, and the target waits while the ring is full.
    if (more) this.#immediate = setImmediate(() => this.#look());
    else this.#timer = setTimeout(() => this.#look(), idleMs);
  }

  /** The ring is worth another read at once. What was read may wait too long already: then it must be digested. */
  #fills(): boolean {
    return this.#target.filled > busy && this.#target.hasRoom;
  }
}
