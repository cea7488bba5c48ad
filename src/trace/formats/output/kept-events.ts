import { RsptraceError } from '../../../base/errors.js';
import { plural } from '../../../text/index.js';
import {
  type GuestNanos,
  type HartInfo,
  type TraceEvent,
  type TraceFacts,
  type TraceInfo,
  type TraceSink,
  timeOf,
} from '../../events/events.js';
import { timeText } from '../../events/text-table.js';
import type { OutputFile } from './output-file.js';

/** So many events, up to a time, have made so many records of the file. */
interface Mark {
  readonly events: number;
  readonly time: GuestNanos;
  readonly records: number;
}

/** Forwards events to a format that writes them as they come. The error of a failed write says how many are kept. */
export class KeptEvents implements TraceSink {
  readonly #sink: TraceSink;
  readonly #file: OutputFile;
  #events = 0;
  /** Of what is in the file for sure. */
  #sure: Mark | undefined;
  /** A mark for each event since then that has made a record, as one array a member: events are many. */
  readonly #ends: number[] = [];
  readonly #times: number[] = [];
  readonly #records: number[] = [];
  #count = 0;

  constructor(sink: TraceSink, file: OutputFile) {
    this.#sink = sink;
    this.#file = file;
  }

  begin(info: TraceInfo): void {
    this.#telling(() => this.#sink.begin(info));
  }

  event(event: TraceEvent): void {
    try {
      this.#sink.event(event);
    } catch (error) {
      throw this.#told(error);
    }
    this.#events++;
    this.#mark(timeOf(event));
  }

  hart(hart: HartInfo): void {
    this.#telling(() => this.#sink.hart(hart));
  }

  flush(): void {
    this.#telling(() => this.#sink.flush());
  }

  end(facts?: TraceFacts): void {
    this.#telling(() => this.#sink.end(facts));
  }

  #telling(work: () => void): void {
    try {
      work();
    } catch (error) {
      throw this.#told(error);
    }
  }

  #mark(time: GuestNanos): void {
    const { records, written } = this.#file;
    const last = this.#count - 1;
    if (last >= 0 && (this.#records[last] as number) <= written) {
      this.#sure = this.#at(last);
      this.#count = 0;
    }
    const at = this.#count > 0 && this.#records[this.#count - 1] === records ? this.#count - 1 : this.#count++;
    this.#ends[at] = this.#events;
    this.#times[at] = time;
    this.#records[at] = records;
  }

  #at(index: number): Mark {
    const [events, time, records] = [this.#ends[index], this.#times[index], this.#records[index]];
    return { events: events as number, time: time as GuestNanos, records: records as number };
  }

  #told(error: unknown): unknown {
    if (!(error instanceof RsptraceError) || error.code !== 'TRACE_WRITE_FAILED') return error;
    const { written } = this.#file;
    const index = this.#records.slice(0, this.#count).findLastIndex((records) => records <= written);
    const last = index < 0 ? this.#sure : this.#at(index);
    const kept = last
      ? `the file has ${plural(last.events, 'event')}, up to ${timeText(last.time)}`
      : 'no event is in it';
    const { code, message, hint, cause } = error;
    return new RsptraceError(code, `${message}; ${kept}`, { hint, cause });
  }
}
