/*
 * A full ring makes writers wait. They wait on a lease, which the client renews:
 *
 *   beat      changes as long as the client lives. A writer that sees it stand still gives up, for all writers.
 *   allowed   how long a process's threads may wait in all, in ticks. It follows what they have waited.
 *
 * A client that is gone renews neither. So nobody waits for it longer than half a second.
 */

import { controlBlock } from '../arch/index.js';
import type { ControlWord } from './ring-segments.js';

/** Between two renewals, in milliseconds. */
const everyMs = 100;
/** A beat that stands still for so long is that of a client that is gone, in milliseconds. */
const patienceMs = 500;
/** A process may wait so long in a second of its time, in milliseconds. */
const mostMs = 20;
const windowMs = 1000;
/** More ticks than any counter counts. */
const forEver = 2n ** 62n;

/** How long writers may wait for room; undefined for the harts of a machine, whose clock stands meanwhile. */
export interface WaitLimit {
  readonly ticksPerMs: number;
  /** They wait as long as the client lives. */
  readonly isLossless: boolean;
}

export class WaitLease {
  readonly #limit: WaitLimit | undefined;
  #beat = 1;
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** What had been waited at each renewal of the last second. */
  #past: { readonly at: number; readonly waited: number }[] = [];

  constructor(limit: WaitLimit | undefined) {
    this.#limit = limit;
  }

  /** The words that stay as they are. */
  get words(): readonly ControlWord[] {
    const patience = BigInt(Math.round((this.#limit?.ticksPerMs ?? 0) * patienceMs));
    return [{ offset: controlBlock.patience, value: patience }];
  }

  /**
   * The words of a renewal: none if the last one is fresh, unless one is wanted `now`. `waited`: ticks, as last read.
   */
  renewed(waited: number, now: boolean, at = performance.now()): readonly ControlWord[] {
    if (!now && at - this.#renewedAt < everyMs) return [];
    this.#renewedAt = at;
    const beat = { offset: controlBlock.beat, value: BigInt(++this.#beat) };
    if (!this.#limit) return [beat];
    return [beat, { offset: controlBlock.allowed, value: this.#allowed(this.#limit, waited, at) }];
  }

  /** In no second more than {@link mostMs}, whatever was waited before it. */
  #allowed({ ticksPerMs, isLossless }: WaitLimit, waited: number, at: number): bigint {
    if (isLossless) return forEver;
    this.#past.push({ at, waited });
    while (this.#past[1] !== undefined && this.#past[1].at <= at - windowMs) this.#past.shift();
    const before = this.#past[0] as { readonly waited: number };
    return BigInt(Math.round(before.waited + mostMs * ticksPerMs));
  }
}
