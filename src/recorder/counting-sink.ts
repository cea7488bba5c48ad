import type { HartInfo, TraceEvent, TraceFacts, TraceSink } from '../trace/index.js';
import type { HartNumbers } from './harts.js';

/** Counts the events that pass through, for progress and limits. */
export class CountingSink implements TraceSink {
  readonly #sink: TraceSink;
  count = 0;
  span = 0;
  /** Where the link was broken, in guest nanoseconds. */
  readonly gaps: { readonly from_ns: number; readonly to_ns: number }[] = [];
  onEvent: (count: number) => void = () => {};
  #first: number | undefined;
  #begun = false;

  constructor(sink: TraceSink, harts: HartNumbers) {
    this.#sink = sink;
    harts.onNew = (hart) => {
      if (this.#begun) this.#sink.hart(hart);
    };
  }

  begin(...args: Parameters<TraceSink['begin']>): void {
    this.#begun = true;
    this.#sink.begin(...args);
  }

  event(event: TraceEvent): void {
    this.count++;
    if (event.type === 'gap') this.gaps.push({ from_ns: event.from, to_ns: event.to });
    const time = event.type === 'gap' ? event.to : event.time;
    this.#first ??= time;
    this.span = time - this.#first;
    this.#sink.event(event);
    this.onEvent(this.count);
  }

  hart(hart: HartInfo): void {
    this.#sink.hart(hart);
  }

  flush(): void {
    if (this.#begun) this.#sink.flush();
  }

  end(facts?: TraceFacts): void {
    this.#sink.end(facts);
  }
}
