import type { HartInfo, TraceEvent, TraceFacts, TraceInfo, TraceSink } from '../events/events.js';
import type { OutputFile } from './output/output-file.js';

/** For formats that the end writes: passes events on to what gathers them, and writes once, if a trace has begun. */
export class WrittenAtEnd implements TraceSink {
  readonly #gathers: TraceSink;
  readonly #out: OutputFile;
  readonly #write: () => void;
  #state: 'before' | 'recording' | 'ended' = 'before';

  constructor(gathers: TraceSink, out: OutputFile, write: () => void) {
    this.#gathers = gathers;
    this.#out = out;
    this.#write = write;
  }

  begin(info: TraceInfo): void {
    this.#state = 'recording';
    this.#gathers.begin(info);
  }

  event(event: TraceEvent): void {
    this.#gathers.event(event);
  }

  hart(hart: HartInfo): void {
    this.#gathers.hart(hart);
  }

  flush(): void {
    // Only the whole file is readable.
  }

  end(facts?: TraceFacts): void {
    const state = this.#state;
    if (state === 'ended') return;
    this.#state = 'ended';
    try {
      this.#gathers.end(facts);
      if (state === 'recording') this.#write();
    } finally {
      this.#out.close();
    }
  }
}
