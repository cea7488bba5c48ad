import { RsptraceError } from '../../../base/errors.js';
import { plural } from '../../../text/index.js';
import {
  type HartInfo,
  type TraceEvent,
  type TraceFacts,
  type TraceInfo,
  type TraceSink,
  timeOf,
} from '../../events/events.js';
import { Filter } from '../../events/sinks.js';
import { timeText } from '../../events/text-table.js';
import type { OutputFile } from './output-file.js';

/** Forwards events to a format that writes them as they come. The error of a failed write says how many are kept. */
export class KeptEvents extends Filter {
  readonly #file: OutputFile;
  #events = 0;
  /**
   * So many events, up to a time, have made so many records: three numbers for the last event whose records are in the
   * file for sure, and for each event since then that has made some.
   */
  readonly #marks: number[] = [];
  /** How many of these numbers count: events are many, and a list that shrinks and grows is slow. */
  #length = 0;

  constructor(sink: TraceSink, file: OutputFile) {
    super(sink);
    this.#file = file;
  }

  override begin(info: TraceInfo): void {
    this.#saysKept(() => this.sink.begin(info));
  }

  event(event: TraceEvent): void {
    try {
      this.sink.event(event);
    } catch (error) {
      throw this.#withKept(error);
    }
    const { records, written } = this.#file;
    let at = this.#length;
    const last = at === 0 ? -1 : (this.#marks[at - 1] as number);
    if (last === records) at -= 3;
    else if (at > 3 && last <= written) {
      this.#marks.copyWithin(0, at - 3, at);
      at = 3;
    }
    this.#marks[at] = ++this.#events;
    this.#marks[at + 1] = timeOf(event);
    this.#marks[at + 2] = records;
    this.#length = at + 3;
  }

  override hart(hart: HartInfo): void {
    this.#saysKept(() => this.sink.hart(hart));
  }

  override flush(): void {
    this.#saysKept(() => this.sink.flush());
  }

  override end(facts?: TraceFacts): void {
    this.#saysKept(() => this.sink.end(facts));
  }

  #saysKept(work: () => void): void {
    try {
      work();
    } catch (error) {
      throw this.#withKept(error);
    }
  }

  #withKept(error: unknown): unknown {
    if (!(error instanceof RsptraceError) || error.code !== 'TRACE_WRITE_FAILED') return error;
    const { written } = this.#file;
    const last = this.#marks.slice(0, this.#length).findLastIndex((records, i) => i % 3 === 2 && records <= written);
    const [events = 0, time = 0] = this.#marks.slice(Math.max(0, last - 2));
    const kept = last < 0 ? 'no event is in it' : `the file has ${plural(events, 'event')}, up to ${timeText(time)}`;
    const { code, message, hint, cause } = error;
    return new RsptraceError(code, `${message}; ${kept}`, { hint, cause });
  }
}
