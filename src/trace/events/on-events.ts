import type { TraceEvent, TraceSink } from './events.js';

/** A sink that only looks at events. */
export function onEvents(event: (event: TraceEvent) => void): TraceSink {
  const nothing = (): void => {};
  return { begin: nothing, hart: nothing, event, flush: nothing, end: nothing };
}
