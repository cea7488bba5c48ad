import type { HartInfo, TraceEvent, TraceInfo, TraceSink } from './events.js';

/**
 * One sink that forwards every event to several. Each gets everything even if one before it throws, because a full
 * disk must not cost the table. Then the first error is thrown.
 */
export function tee(sinks: readonly TraceSink[]): TraceSink {
  const toAll = (send: (sink: TraceSink) => void): void => {
    let failed = false;
    let first: unknown;
    for (const sink of sinks) {
      try {
        send(sink);
      } catch (error) {
        if (!failed) first = error;
        failed = true;
      }
    }
    if (failed) throw first;
  };
  return {
    begin: (info: TraceInfo) => toAll((sink) => sink.begin(info)),
    event: (event: TraceEvent) => {
      let i = 0;
      try {
        for (; i < sinks.length; i++) sinks[i]?.event(event);
      } catch (error) {
        rest(sinks.slice(i + 1), event);
        throw error;
      }
    },
    hart: (hart: HartInfo) => toAll((sink) => sink.hart(hart)),
    flush: () => toAll((sink) => sink.flush()),
    end: (facts) => toAll((sink) => sink.end(facts)),
  };
}

/** One has failed already. The sinks behind it get the event all the same, and their errors are not the first. */
function rest(sinks: readonly TraceSink[], event: TraceEvent): void {
  for (const sink of sinks) {
    try {
      sink.event(event);
    } catch {
      // The first error is the one that is thrown.
    }
  }
}
