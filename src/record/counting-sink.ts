import { Filter, type TraceEvent, type TraceFacts, type TraceSink, timeOf } from '../trace/index.js';
import type { HartNumbers } from './harts.js';

/** More stops than these are those of probes. */
const mostStops = 1000;

/** Counts the events that pass through, for progress and limits. */
export class CountingSink extends Filter {
  count = 0;
  span = 0;
  /** Where nothing was recorded, in guest nanoseconds: because of `why`, or because the link was broken. */
  readonly gaps: { readonly from_ns: number; readonly to_ns: number; readonly why?: string }[] = [];
  /** When a breakpoint has stopped the target, and when the next event was, in guest nanoseconds; the first of them. */
  readonly stoppedAt: number[] = [];
  onEvent: (count: number) => void = () => {};
  /** Called once, behind the first event. */
  onFirst: () => void = () => {};
  /** Called when all events are there, before the sink ends. */
  onLast: () => void = () => {};
  #first: number | undefined;
  #begun = false;
  /** The last stop, if no event has come since. */
  #stood = Number.POSITIVE_INFINITY;

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
    if (time >= this.#stood) {
      if (time > this.#stood) this.stoppedAt.push(time);
      this.#stood = Number.POSITIVE_INFINITY;
    }
    this.sink.event(event);
    if (isFirst) this.onFirst();
    this.onEvent(this.count);
  }

  /** The target stands at a place of ours, at this time. */
  stood(time: number): void {
    if (this.stoppedAt.length >= mostStops) return;
    this.stoppedAt.push(time);
    this.#stood = Math.min(this.#stood, time);
  }

  override flush(): void {
    if (this.#begun) this.sink.flush();
  }

  override end(facts?: TraceFacts): void {
    this.onLast();
    this.sink.end(facts);
  }
}
