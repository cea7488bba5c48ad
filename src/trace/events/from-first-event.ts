import type { HartInfo, TraceEvent, TraceFacts, TraceInfo, TraceSink } from './events.js';

/** A sink that the first event opens: where nothing is chosen of a trace, nothing is written. */
export class FromFirstEvent implements TraceSink {
  readonly #open: () => TraceSink;
  #sink: TraceSink | undefined;
  #info: TraceInfo | undefined;
  readonly #harts: HartInfo[] = [];
  #facts: TraceFacts | undefined;

  constructor(open: () => TraceSink) {
    this.#open = open;
  }

  begin(info: TraceInfo): void {
    this.#info = info;
  }

  hart(hart: HartInfo): void {
    if (this.#sink) this.#sink.hart(hart);
    else this.#harts.push(hart);
  }

  event(event: TraceEvent): void {
    this.#sink ??= this.#opened();
    this.#sink.event(event);
  }

  flush(): void {
    this.#sink?.flush();
  }

  /** Without an event before it this does nothing: {@link finish} is for a trace that has none. */
  end(facts?: TraceFacts): void {
    this.#facts = facts;
    this.#sink?.end(facts);
  }

  /** The trace was read: one without events is written, too. */
  finish(): void {
    if (this.#sink) return;
    this.#sink = this.#opened();
    this.#sink.end(this.#facts);
  }

  #opened(): TraceSink {
    const sink = this.#open();
    if (this.#info) sink.begin(this.#info);
    for (const hart of this.#harts) sink.hart(hart);
    return sink;
  }
}
