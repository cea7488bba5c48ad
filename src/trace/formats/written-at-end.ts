import type { HartInfo, TraceEvent, TraceFacts, TraceInfo, TraceSink } from '../events/events.js';
import type { OutputFile } from './output/output-file.js';

/**
 * For formats that the end writes: passes events on to what gathers them, and writes once, if a trace has begun.
 * Nothing is gathered or written once that has failed.
 */
export class WrittenAtEnd implements TraceSink {
  readonly #gathers: TraceSink;
  readonly #out: Pick<OutputFile, 'close'>;
  readonly #write: () => void;
  #state: 'before' | 'recording' | 'failed' | 'ended' = 'before';

  constructor(gathers: TraceSink, out: Pick<OutputFile, 'close'>, write: () => void) {
    this.#gathers = gathers;
    this.#out = out;
    this.#write = write;
  }

  begin(info: TraceInfo): void {
    this.#state = 'recording';
    this.#gathers.begin(info);
  }

  event(event: TraceEvent): void {
    if (this.#state === 'failed') return;
    try {
      this.#gathers.event(event);
    } catch (error) {
      this.#state = 'failed';
      throw error;
    }
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
      if (state === 'failed') return;
      this.#gathers.end(facts);
      if (state === 'recording') this.#write();
    } finally {
      this.#out.close();
    }
  }
}

/** Opens a file whose text is made at the end of what a sink has gathered. */
export function textAtEnd<T extends TraceSink>(gathering: () => T, text: (gathered: T) => Iterable<string>) {
  return (file: OutputFile): TraceSink => {
    const gathers = gathering();
    return new WrittenAtEnd(gathers, file, () => {
      for (const part of text(gathers)) file.textRecord(part);
    });
  };
}
