import type { Logger } from '../base/logger.js';
import type { RecordQueue } from './backlog.js';
import type { RecordDispatcher } from './record-dispatcher.js';

/** Records between two reads of the clock. */
const digestedAtOnce = 256;

/** Records that were read out of the ring, on their way to the tracer. */
export class DrainedRecords {
  readonly queue: RecordQueue;
  readonly #dispatcher: RecordDispatcher;
  readonly #slot: number;
  readonly #logger: Logger;
  readonly #waits: boolean;
  #enough = false;
  /** Bytes of records that were digested. */
  #digested = 0;
  readonly #waiting: { readonly at: number; readonly handler: () => void }[] = [];
  /** How long records were digested, in milliseconds. */
  digestedMs = 0;
  /** How much of that the target stood for. */
  heldMs = 0;

  /** `slot`: bytes of one record's slot. `waits`: nothing is digested until {@link digestAll}. */
  constructor(dispatcher: RecordDispatcher, queue: RecordQueue, slot: number, logger: Logger, waits = false) {
    this.queue = queue;
    this.#waits = waits;
    this.#dispatcher = dispatcher;
    this.#slot = slot;
    this.#logger = logger;
  }

  add(view: DataView, start: number, end: number): void {
    for (let at = start; at < end; at += this.#slot) this.#dispatcher.count(view, at);
    this.queue.add(view, start, end);
  }

  /** More records may be drained before some are digested. */
  get hasRoom(): boolean {
    return this.queue.room > 0;
  }

  /** Drained records that were not digested yet. */
  get undigested(): number {
    return this.queue.bytes / this.#slot;
  }

  /** Drained records that could not be kept. */
  get lost(): number {
    return this.queue.lost / this.#slot;
  }

  /** Calls whose return was not drained yet. */
  get openCalls(): number {
    return this.#dispatcher.open;
  }

  /** The rest is not wanted. */
  get isEnough(): boolean {
    return this.#enough;
  }

  enough(): void {
    this.#enough = true;
  }

  /** Calls `handler` when all that was drained until now has been digested. */
  whenDigested(handler: () => void): void {
    if (this.queue.bytes === 0) handler();
    else this.#waiting.push({ at: this.#digested + this.queue.bytes, handler });
  }

  /**
   * Digests records for about this many milliseconds.
   * @returns true while there is more
   */
  digest(budgetMs: number): boolean {
    return !this.#waits && this.#timed(budgetMs);
  }

  #timed(budgetMs: number): boolean {
    const began = performance.now();
    try {
      return this.#digest(began + budgetMs);
    } finally {
      this.digestedMs += performance.now() - began;
    }
  }

  #digest(end: number): boolean {
    // Asked once for all drained records, so that a record costs nothing more when nobody logs.
    const isTraced = !this.#enough && this.#logger.isLevelEnabled('trace');
    for (let run = this.queue.first; run; run = this.queue.first) {
      const { view, start } = run;
      const most = Math.min(
        digestedAtOnce * this.#slot,
        (this.#waiting[0]?.at ?? Number.POSITIVE_INFINITY) - this.#digested,
      );
      const stop = Math.min(run.end, start + most);
      if (isTraced) this.#trace(view, start, stop);
      // A record may be the last that is wanted.
      for (let at = start; at < stop && !this.#enough; at += this.#slot) this.#dispatcher.dispatch(view, at);
      this.queue.advance(run, stop - start);
      this.#digested += stop - start;
      while (this.#waiting[0] && this.#waiting[0].at <= this.#digested) this.#waiting.shift()?.handler();
      if (performance.now() > end) return true;
    }
    return false;
  }

  /** While the target stands. */
  digestAll(): void {
    const before = this.digestedMs;
    try {
      while (this.#timed(Number.POSITIVE_INFINITY));
    } finally {
      this.heldMs += this.digestedMs - before;
    }
  }

  #trace(view: DataView, start: number, stop: number): void {
    for (let at = start; at < stop; at += this.#slot) {
      const record = this.#dispatcher.describe(view, at);
      if (record) this.#logger.trace(record, 'record');
    }
  }
}
