import type { Drain } from './drain.js';
import type { TargetEngine } from './target-engine.js';

/** How long the target runs unattended when the ring was nearly empty, in milliseconds. */
const idleMs = 1;
/** How long records are worked on between two looks at the ring, in milliseconds. */
const digestMs = 2;

/** Reads the ring out of shared memory, again and again while the target runs. */
export class LiveDrain implements Drain {
  readonly #target: TargetEngine;
  readonly #onError: (thrown: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;

  /** Begins. What throws ends it, and is given to `onError`. */
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
    await this.#target.drainStopped({ all: tells, pending: tells });
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
  }

  #look(): void {
    let more = false;
    try {
      this.#target.drainLive();
      more = this.#target.digest(digestMs);
    } catch (thrown) {
      this.#onError(thrown);
      return;
    }
    // A timer would come a millisecond later, and the target waits for a ring that is full.
    if (more) this.#immediate = setImmediate(() => this.#look());
    else this.#timer = setTimeout(() => this.#look(), idleMs);
  }
}
