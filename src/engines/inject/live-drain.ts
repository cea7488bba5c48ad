import type { Drain } from './drain.js';
import type { TargetEngine } from './target-engine.js';

/** How long to wait between two reads of a ring that was nearly empty, in milliseconds. */
const idleMs = 1;
/** How long records are digested between two reads of the ring, in milliseconds. */
const digestMs = 2;
/** A ring that fills by this share between two reads is read, and nothing else is done. */
const busy = 0.25;

/** Polls the ring in shared memory while the target runs. */
export class LiveDrain implements Drain {
  readonly #target: TargetEngine;
  readonly #onError: (thrown: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;

  /** Begins to poll. An error ends it and is given to `onError`. */
  constructor(target: TargetEngine, onError: (thrown: unknown) => void) {
    this.#target = target;
    this.#onError = onError;
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
      more = this.#target.drainLive() || this.#target.filled > busy || this.#target.digest(digestMs);
    } catch (thrown) {
      this.#onError(thrown);
      return;
    }
    // No timer: it would fire a millisecond later, and the target waits while the ring is full.
    if (more) this.#immediate = setImmediate(() => this.#look());
    else this.#timer = setTimeout(() => this.#look(), idleMs);
  }
}
