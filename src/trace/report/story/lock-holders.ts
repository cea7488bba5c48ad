import type { CallBegin, CallEnd, PlaceHit } from '../../events/events.js';
import { isLockTaken, lockUse } from '../../events/lock-events.js';

/** Who holds each lock, as far as events show it. */
export class LockHolders {
  readonly #holders = new Map<string, string>();

  /** Where the lock was taken that a call waits for: `kernel::holder at src/table.rs:99`. */
  of(begin: CallBegin): string | undefined {
    return this.#holders.get(lockUse(begin)?.lock ?? '');
  }

  taken(end: CallEnd): void {
    const use = end.begin && isLockTaken(end) ? lockUse(end.begin) : undefined;
    if (use) this.#holders.set(use.lock, use.by);
  }

  released({ place: { lock } }: PlaceHit): void {
    if (lock !== undefined) this.#holders.delete(lock);
  }

  forget(): void {
    this.#holders.clear();
  }
}
