import { RsptraceError } from '../../base/errors.js';
import type { HartInfo, TraceEvent, TraceFacts, TraceInfo, TraceSink } from '../events/events.js';
import { Filter } from '../events/sinks.js';
import type { LaneWriter } from './lane-writer.js';
import { Lanes } from './lanes.js';
import { nothingKept, type OutputFile } from './output/output-file.js';

/** Events whose slices are in memory until the end: of more, viewers open no file. */
const MOST = 1 << 24;

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

/** Opens a file whose slices are in memory until the end, because their order differs from that of events. */
export function lanesAtEnd(out: OutputFile, writer: LaneWriter & { readonly write: () => void }): TraceSink {
  return new WrittenAtEnd(new AtMost(new Lanes(writer), out.path), out, () => writer.write());
}

class AtMost extends Filter {
  readonly #path: string;
  #count = 0;

  constructor(sink: TraceSink, path: string) {
    super(sink);
    this.#path = path;
  }

  event(event: TraceEvent): void {
    if (++this.#count > MOST) {
      const why = `${this.#path} would have more than ${MOST} events, which are kept in memory until the end`;
      throw new RsptraceError('TRACE_WRITE_FAILED', why, { hint: nothingKept });
    }
    this.sink.event(event);
  }
}
