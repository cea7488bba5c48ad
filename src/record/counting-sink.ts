import { Filter, type TraceEvent, type TraceFacts, type TraceSink, timeOf } from '../trace/index.js';
import type { HartNumbers } from './harts.js';

/** Counts the events that pass through, for progress and limits. */
export class CountingSink extends Filter {
  count = 0;
  span = 0;
  /** Where nothing was recorded, in guest nanoseconds: because of `why`, or because the link was broken. */
  readonly gaps: { readonly from_ns: number; readonly to_ns: number; readonly why?: string }[] = [];
  onEvent: (count: number) => void = () => {};
  /** Called once, behind the first event. */
  onFirst: () => void = () => {};
  /** Called when all events are there, before the sink ends. */
  onLast: () => void = () => {};
  #first: number | undefined;
  #begun = false;

  constructor(sink: TraceSink, harts: HartNumbers) {
    super(sink);
    harts.onNew = (hart) => {
      if (this.#begun) this.sink.hart(hart);
    };
  }

  override begin(...args: Parameters<TraceSink['begin']>): void {
    this.#begun = true;
    this.sink.begin(...args);
  }

  event(event: TraceEvent): void {
    this.count++;
    if (event.type === 'gap') {
      const { from, to, why } = event;
      this.gaps.push({ from_ns: from, to_ns: to, ...(why === undefined ? {} : { why }) });
    }
    const time = timeOf(event);
    const isFirst = this.#first === undefined;
    this.#first ??= time;
    this.span = time - this.#first;
    this.sink.event(event);
    if (isFirst) this.onFirst();
    this.onEvent(this.count);
  }

  override flush(): void {
    if (this.#begun) this.sink.flush();
  }

  override end(facts?: TraceFacts): void {
    this.onLast();
    this.sink.end(facts);
  }
}
