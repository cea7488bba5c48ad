import { messageOf, RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import { Backlog, leastShared, type RecordQueue, type Run } from './backlog.js';
import type { LogReader, RawLog } from './raw-log.js';

/** Bytes that are drained at once: they stay in the processor's cache until they are in the file. */
const drainedAtOnce = 1 << 20;

/** Records that wait in a file: the target never waits for the client to understand them. */
export class LoggedRecords implements RecordQueue {
  readonly #log: RawLog;
  readonly #reader: LogReader;
  readonly #logger: Logger;
  /** What the file has no more room for. */
  readonly #memory = new Backlog();
  /** The file cannot be written. `error`: that has to be thrown. */
  #failure: { error: RsptraceError | undefined } | undefined;
  lost = 0;
  #run: Run | undefined;
  #bytes = 0;
  readonly #arena = new ArrayBuffer(4 * drainedAtOnce);
  #used = 0;

  constructor(log: RawLog, slot: number, logger: Logger = silent) {
    this.#log = log;
    this.#logger = logger;
    this.#reader = log.reader(slot);
  }

  get bytes(): number {
    return this.#bytes + this.#memory.bytes;
  }

  get room(): number {
    return this.#failure && !this.#log.isTrace ? this.#memory.room : drainedAtOnce;
  }

  get first(): Run | undefined {
    if (this.#run && this.#run.start < this.#run.end) return this.#run;
    for (;;) {
      const part = this.#reader.next(this.#log.length);
      if (part?.kind === 'entry') continue;
      this.#run = part?.kind === 'records' ? { ...part } : undefined;
      return this.#run ?? this.#memory.first;
    }
  }

  open(length: number): Uint8Array {
    if (length < leastShared || this.#used + length > this.#arena.byteLength) return new Uint8Array(length);
    const bytes = new Uint8Array(this.#arena, this.#used, length);
    this.#used += length;
    return bytes;
  }

  close(): void {}

  add(view: DataView, start: number, end: number): void {
    if (this.#failure) {
      this.#remember(view, start, end);
      return;
    }
    try {
      this.#log.records(new Uint8Array(view.buffer, view.byteOffset + start, end - start));
      this.#bytes += end - start;
    } catch (thrown) {
      this.#fail(thrown);
      this.#remember(view, start, end);
    }
  }

  settle(): void {
    this.#used = 0;
    try {
      if (!this.#failure) this.#log.flush();
    } catch (thrown) {
      this.#fail(thrown);
    }
    const { error } = this.#failure ?? {};
    this.#failure &&= { error: undefined };
    if (error) throw error;
  }

  advance(run: Run, bytes: number): void {
    if (run !== this.#run) {
      this.#memory.advance(run, bytes);
      return;
    }
    run.start += bytes;
    this.#bytes -= bytes;
  }

  #remember(view: DataView, start: number, end: number): void {
    // That the trace cannot be written ends the recording.
    if (this.#log.isTrace) {
      this.lost += end - start;
      return;
    }
    // The memory that it lies in is used again.
    const bytes = Uint8Array.from(new Uint8Array(view.buffer, view.byteOffset + start, end - start));
    this.#memory.add(new DataView(bytes.buffer), 0, bytes.length);
  }

  #fail(thrown: unknown): void {
    const { path, isTrace } = this.#log;
    this.#failure = { error: isTrace ? traceFailed(path, thrown) : undefined };
    const rest = this.#log.unwritten();
    this.#bytes -= rest.length;
    if (isTrace) {
      this.lost += rest.length;
      return;
    }
    if (rest.length > 0) this.#memory.add(new DataView(rest.buffer), 0, rest.length);
    this.#logger.warn({ error: String(thrown), path }, 'records wait in memory now, so the target may have to wait');
  }
}

/** The error of records that cannot be written, where they are the trace. */
export function traceFailed(path: string, cause: unknown): RsptraceError {
  return new RsptraceError('TRACE_WRITE_FAILED', `cannot go on writing the trace ${path}: ${messageOf(cause)}`, {
    hint: 'What was written before is kept and can be read.',
    cause,
  });
}
