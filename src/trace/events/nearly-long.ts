import { textLines } from '../../text/index.js';
import { type Disturbance, ownSpans, type Span } from './disturbance.js';
import type { FutureRef, TraceEvent } from './events.js';
import { defaultLongPoll } from './findings.js';
import { Fold } from './sinks.js';
import { timeText } from './text-table.js';

/** Polls of this share of a long one are worth a hint. */
const share = 0.1;
const mostSpans = 10_000;

/** Looks for polls of tasks that take long, and not so long as to be findings. */
export class NearlyLong extends Fold {
  readonly #spans: (Span & { readonly future: FutureRef })[] = [];

  event(event: TraceEvent): void {
    if (event.type !== 'poll-end' || !event.begin) return;
    const { root, future, address, begin, time } = event;
    const ns = time - begin.time;
    const isTask = future === root.future && address === root.address;
    if (!isTask || ns < share * defaultLongPoll || ns >= defaultLongPoll || this.#spans.length >= mostSpans) return;
    this.#spans.push({ from: begin.time, ns, future });
  }

  /** A line, or nothing. `disturbance`: undefined if probes were made to stop the target. */
  text(disturbance: Disturbance | undefined): string {
    const own = disturbance ? ownSpans(this.#spans, disturbance).filter(({ ns }) => ns >= share * defaultLongPoll) : [];
    const [longest] = own.sort((a, b) => b.ns - a.ns);
    if (!longest) return '';
    const polls = own.length === 1 ? 'a poll' : `${own.length} polls`;
    const [limit, least] = [defaultLongPoll, share * defaultLongPoll].map((ns) => `${ns / 1e6}ms`);
    return textLines([
      `${polls} took ${least} or more, up to ${timeText(longest.ns)} (${longest.future.future}); a finding takes ${limit}: --long-poll ${least}`,
    ]);
  }
}
