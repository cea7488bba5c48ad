import { closeSync, constants, fstatSync, ftruncateSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { messageOf, RsptraceError } from '../base/errors.js';
import { copyBytes } from './copy-bytes.js';

const CAPACITY = 256 * 1024;

/**
 * A trace file that grows by whole records. It is written synchronously, through a buffer of fixed size, and every write ends
 * at a record's end: a tracer that is killed leaves a file of whole records.
 *
 * Opening touches nothing that was there: an older file of that name is emptied by the first write, not before, and a file
 * that was made and never written to is removed by {@link close}.
 */
export class OutputFile {
  readonly path: string;
  readonly #fd: number;
  readonly #isNew: boolean;
  /** Memory for a record that is written in place, see {@link reserve}, and a view of the same. */
  readonly buffer = Buffer.allocUnsafe(CAPACITY);
  readonly view = new DataView(this.buffer.buffer, this.buffer.byteOffset, CAPACITY);
  /** Where each record in the buffer ends: what is kept when the disk fills up in the middle of a write. */
  readonly #ends: number[] = [];
  #endCount = 0;
  #length = 0;
  #written = 0;
  #state: 'untouched' | 'writing' | 'failed' | 'closed' = 'untouched';

  /** Opens `path` for writing; `TRACE_CANNOT_WRITE` when that fails. */
  constructor(path: string) {
    this.path = path;
    const { fd, isNew } = openForWriting(path);
    this.#fd = fd;
    this.#isNew = isNew;
  }

  /**
   * Room for a record of so many bytes, to be written into {@link buffer} from the offset that is returned, and then to be
   * {@link commit}ted. Undefined where it must go through {@link record}: it is too long, or records are dropped since a write failed.
   * Throws as {@link record}.
   */
  reserve(length: number): number | undefined {
    return length <= CAPACITY && this.#makeRoom(length) ? this.#length : undefined;
  }

  /** The record that room was made for ends before this offset. */
  commit(end: number): void {
    this.#ended(end);
  }

  /**
   * Appends one record: the first `length` of `bytes`. It is copied, so `bytes` may be used again. A failed write throws
   * `TRACE_WRITE_FAILED` once; after it, records are dropped without a word.
   */
  record(bytes: Uint8Array, length: number): void {
    if (!this.#makeRoom(length)) return;
    if (length > CAPACITY) {
      this.#ends[this.#endCount++] = length;
      this.#write(bytes, length);
      return;
    }
    copyBytes(bytes, length, this.buffer, this.#length);
    this.#ended(this.#length + length);
  }

  /** Appends one record of text, as UTF-8; like {@link record} otherwise. */
  textRecord(text: string): void {
    const worst = text.length * 3;
    if (worst > CAPACITY) {
      const bytes = Buffer.from(text);
      this.record(bytes, bytes.length);
    } else if (this.#makeRoom(worst)) {
      this.#ended(this.#length + this.buffer.write(text, this.#length));
    }
  }

  /** Writes out what is buffered; `TRACE_WRITE_FAILED` as {@link record}. */
  flush(): void {
    if (this.#state !== 'writing' || this.#length === 0) return;
    this.#write(this.buffer, this.#length);
    this.#length = 0;
  }

  /** Flushes and closes. The second time, nothing happens. */
  close(): void {
    if (this.#state === 'closed') return;
    const neverWritten = this.#state === 'untouched';
    try {
      this.flush();
    } finally {
      this.#state = 'closed';
      closeSync(this.#fd);
      if (neverWritten && this.#isNew) unlinkSync(this.path);
    }
  }

  #makeRoom(length: number): boolean {
    if (this.#state === 'untouched') {
      this.#state = 'writing';
      if (fstatSync(this.#fd).isFile()) ftruncateSync(this.#fd, 0);
    }
    if (this.#length + length > CAPACITY) this.flush();
    return this.#state === 'writing';
  }

  #ended(end: number): void {
    this.#length = end;
    this.#ends[this.#endCount++] = end;
  }

  #write(bytes: Uint8Array, length: number): void {
    let done = 0;
    try {
      while (done < length) done += writeSync(this.#fd, bytes, done, length - done);
      this.#written += length;
    } catch (error) {
      this.#state = 'failed';
      this.#cutToWholeRecords(done);
      throw new RsptraceError(
        'TRACE_WRITE_FAILED',
        `cannot go on writing the trace ${this.path}: ${messageOf(error)}`,
        { hint: 'What was written before is kept and can be opened.', cause: error },
      );
    } finally {
      this.#endCount = 0;
    }
  }

  #cutToWholeRecords(done: number): void {
    const whole = this.#ends.slice(0, this.#endCount).findLast((end) => end <= done) ?? 0;
    try {
      if (fstatSync(this.#fd).isFile()) ftruncateSync(this.#fd, this.#written + whole);
    } catch {
      // The write's own error is the one to tell of; readers of both formats put up with a torn last record.
    }
  }
}

function openForWriting(path: string): { fd: number; isNew: boolean } {
  try {
    return { fd: openSync(path, 'wx'), isNew: true };
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw cannotWrite(path, error);
  }
  try {
    // Not 'w', which would empty the file. O_CREAT makes the target of a dangling link.
    return { fd: openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o666), isNew: false };
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

function cannotWrite(path: string, error: unknown): RsptraceError {
  const hint = isCode(error, 'ENOENT') ? 'The folder has to exist.' : 'Name a file that can be written with -o.';
  return new RsptraceError('TRACE_CANNOT_WRITE', `cannot write the trace to ${path}: ${messageOf(error)}`, {
    hint,
    cause: error,
  });
}
