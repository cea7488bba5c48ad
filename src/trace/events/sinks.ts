import type { HartInfo, TraceEvent, TraceFacts, TraceInfo, TraceSink } from './events.js';

/** A sink that makes something of events. What it does not override does nothing. */
export abstract class Fold implements TraceSink {
  begin(_info: TraceInfo): void {}

  abstract event(event: TraceEvent): void;

  hart(_hart: HartInfo): void {}

  flush(): void {}

  end(_facts?: TraceFacts): void {}
}

/** A sink in front of another one. What it does not override is passed on. */
export abstract class Filter implements TraceSink {
  protected readonly sink: TraceSink;

  constructor(sink: TraceSink) {
    this.sink = sink;
  }

  begin(info: TraceInfo): void {
    this.sink.begin(info);
  }

  abstract event(event: TraceEvent): void;

  hart(hart: HartInfo): void {
    this.sink.hart(hart);
  }

  flush(): void {
    this.sink.flush();
  }

  end(facts?: TraceFacts): void {
    this.sink.end(facts);
  }
}

/** A sink that only takes events. */
export function onEvents(event: (event: TraceEvent) => void): TraceSink {
  const nothing = (): void => {};
  return { begin: nothing, hart: nothing, event, flush: nothing, end: nothing };
}

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
    begin: (info) => toAll((sink) => sink.begin(info)),
    event: (event) => {
      // Without a closure an event, as long as nothing fails.
      let i = 0;
      try {
        for (; i < sinks.length; i++) sinks[i]?.event(event);
      } catch (error) {
        rest(sinks.slice(i + 1), event);
        throw error;
      }
    },
    hart: (hart) => toAll((sink) => sink.hart(hart)),
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
