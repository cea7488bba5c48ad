import type { Logger } from '../../base/logger.js';
import { Backlog } from './backlog.js';
import type { RecordDispatcher } from './record-dispatcher.js';

/** Records between two reads of the clock. */
const digestedAtOnce = 256;

/** Records that were read out of the ring, on their way to the tracer. */
export class DrainedRecords {
  readonly backlog = new Backlog();
  readonly #dispatcher: RecordDispatcher;
  readonly #slot: number;
  readonly #logger: Logger;
  #enough = false;

  /** `slot`: bytes of one record's slot. */
  constructor(dispatcher: RecordDispatcher, slot: number, logger: Logger) {
    this.#dispatcher = dispatcher;
    this.#slot = slot;
    this.#logger = logger;
  }

  readonly add = (view: DataView, start: number, end: number): void => this.backlog.add(view, start, end);

  /** Calls whose return was not seen yet. */
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

  /**
   * Digests records for about this many milliseconds.
   * @returns true while there is more
   */
  digest(budgetMs: number): boolean {
    const end = performance.now() + budgetMs;
    // Asked once for all drained records, so that a record costs nothing more when nobody logs.
    const isTraced = !this.#enough && this.#logger.isLevelEnabled('trace');
    for (let run = this.backlog.first; run; run = this.backlog.first) {
      const { view, start } = run;
      const stop = Math.min(run.end, start + digestedAtOnce * this.#slot);
      if (isTraced) this.#trace(view, start, stop);
      for (let at = start; at < stop; at += this.#slot) {
        if (this.#enough) this.#dispatcher.count(view, at);
        else this.#dispatcher.tell(view, at);
      }
      this.backlog.advance(run, stop - start);
      if (performance.now() > end) return true;
    }
    return false;
  }

  digestAll(): void {
    while (this.digest(Number.POSITIVE_INFINITY));
  }

  #trace(view: DataView, start: number, stop: number): void {
    for (let at = start; at < stop; at += this.#slot) {
      const record = this.#dispatcher.describe(view, at);
      if (record) this.#logger.trace(record, 'record');
    }
  }
}
