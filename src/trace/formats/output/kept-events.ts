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
  #marks: number[] = [];

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
    const last = this.#marks[this.#marks.length - 1] ?? 0;
    if (last <= written && this.#marks.length > 3) this.#marks = this.#marks.slice(-3);
    if (last === records) this.#marks.length = Math.max(0, this.#marks.length - 3);
    this.#marks.push(++this.#events, timeOf(event), records);
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
    const last = this.#marks.findLastIndex((records, i) => i % 3 === 2 && records <= this.#file.written);
    const [events = 0, time = 0] = this.#marks.slice(Math.max(0, last - 2));
    const kept = last < 0 ? 'no event is in it' : `the file has ${plural(events, 'event')}, up to ${timeText(time)}`;
    const { code, message, hint, cause } = error;
    return new RsptraceError(code, `${message}; ${kept}`, { hint, cause });
  }
}
