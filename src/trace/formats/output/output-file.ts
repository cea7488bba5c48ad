import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  realpathSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { messageOf, RsptraceError } from '../../../base/errors.js';
import {
  abandon,
  holdsBytes,
  isAt,
  isCode,
  type OpenedFile,
  openLocked,
  openUntouched,
  outputExists,
} from '../../../base/locked-file.js';
import { GzipBlocks } from './gzip-blocks.js';
import { RecordBlock, type TextPart, wholeText } from './record-block.js';

const CAPACITY = 1024 * 1024;
/** Where blocks are packed, records up to here are not, so that the file's kind and version can be seen. */
const PLAIN_HEAD = 4096;
/** The hint of a failed write after which the file can be opened. */
export const writtenKept = 'What was written before is kept and can be opened.';
/** That of one after which it cannot. */
export const nothingKept =
  'This format is written at the end, so nothing can be opened: a .pftrace keeps what was written.';

/** Protects other files. Nothing is done unless it is asked for. */
export interface OutputOptions {
  /**
   * Locks the file against other programs that lock it: `OUTPUT_IN_USE`. Called with a warning if files cannot be
   * locked.
   */
  readonly lock?: ((warning: string) => void) | undefined;
  /** An older file that is not empty is overwritten. Else it is refused: `OUTPUT_EXISTS`. */
  readonly force?: boolean | undefined;
  /** An older file is neither refused nor emptied but renamed: this is appended to its name. */
  readonly keepAs?: string | undefined;
  /** False: only the whole file is readable, and the error of a failed write says so. */
  readonly isAppended?: boolean | undefined;
  /** What is written is packed with gzip. */
  readonly isPacked?: boolean | undefined;
  /** Makes one record of a block of whole ones. Only full blocks of regular files go through it. */
  readonly packing?: ((records: Uint8Array) => Uint8Array) | undefined;
}

/**
 * A trace file that grows by whole records. It is written synchronously, through a buffer of fixed size. Every write
 * ends at a record's end, so that a tracer that is killed leaves a file of whole records.
 *
 * Where blocks are packed, a flush writes records as they are. The packed block takes their place once it is full. A
 * kill right between costs what was flushed of this block. The bytes do not depend on when it was flushed.
 *
 * Opening touches nothing that was there: an older file of that name is emptied or renamed by the first write, not
 * before. A file that was made and never written to is removed by {@link close}.
 */
export class OutputFile {
  readonly path: string;
  readonly #options: OutputOptions;
  #end: FileEnd;
  readonly #block = new RecordBlock(CAPACITY);
  /** Bytes of the block that the file has already. */
  #flushed = 0;
  readonly #gzip: GzipBlocks | undefined;
  #state: 'untouched' | 'writing' | 'failed' | 'closed' = 'untouched';

  /** Opens `path` for writing; `OUTPUT_CANNOT_WRITE` when that fails, and what the options say. */
  constructor(path: string, options: OutputOptions = {}) {
    this.path = path;
    this.#options = options;
    this.#gzip = options.isPacked ? new GzipBlocks() : undefined;
    this.#end = new FileEnd(open(path, options));
    try {
      if (holdsBytes(this.#end.file.fd)) this.#checkOlder();
    } catch (error) {
      closeSync(this.#end.file.fd);
      throw error instanceof RsptraceError ? error : cannotWrite(path, error);
    }
  }

  /** Memory for a record that is written in place, see {@link reserve}. */
  get buffer(): Uint8Array {
    return this.#block.bytes;
  }

  /** Of the same. */
  get view(): DataView {
    return this.#block.view;
  }

  /**
   * Room for a record of this many bytes. Write it into {@link buffer} from the returned offset, then {@link commit}.
   * Undefined if it must go through {@link record}, because it is too long, or because records are dropped after a
   * failed write. Throws as {@link record}.
   */
  reserve(length: number): number | undefined {
    return length <= CAPACITY && this.#makeRoom(length) ? this.#block.length : undefined;
  }

  /** The record that room was made for ends before this offset. */
  commit(end: number): void {
    this.#block.ended(end);
  }

  /**
   * Appends one record: the first `length` of `bytes`. It is copied, so `bytes` may be used again. A failed write
   * throws `TRACE_WRITE_FAILED` once; after it, records are dropped without a word.
   */
  record(bytes: Uint8Array, length: number): void {
    if (!this.#makeRoom(length)) return;
    if (length > CAPACITY) this.#write(bytes, length);
    else this.#block.addBytes(bytes, length);
  }

  /** Appends one record of text, as UTF-8; like {@link record} otherwise. */
  textRecord(text: string | readonly TextPart[]): void {
    if (!this.#makeRoom(0) || this.#block.addText(text)) return;
    this.#endBlock();
    if (this.#state !== 'writing' || this.#block.addText(text)) return;
    const bytes = Buffer.from(wholeText(text));
    this.record(bytes, bytes.length);
  }

  /** Writes out what is buffered; `TRACE_WRITE_FAILED` as {@link record}. */
  flush(): void {
    const block = this.#block;
    if (this.#state !== 'writing' || block.length === this.#flushed) return;
    if (this.#packing) {
      this.#append(block.bytes.subarray(this.#flushed, block.length));
      this.#flushed = block.length;
    } else this.#write(block.bytes, block.length);
  }

  /** Flushes and closes. The second time, nothing happens. */
  close(): void {
    if (this.#state === 'closed') return;
    const neverWritten = this.#state === 'untouched';
    try {
      this.flush();
      if (this.#gzip && this.#state === 'writing') this.#append(this.#gzip.end());
    } finally {
      this.#state = 'closed';
      if (neverWritten) abandon(this.path, this.#end.file);
      else closeSync(this.#end.file.fd);
    }
  }

  #makeRoom(length: number): boolean {
    if (this.#state === 'untouched') this.#makeEmpty();
    if (!this.#block.hasRoom(length)) this.#endBlock();
    return this.#state === 'writing';
  }

  get #packing(): OutputOptions['packing'] {
    return this.#gzip || !this.#end.isRegular ? undefined : this.#options.packing;
  }

  /** Empties the buffer into the file. */
  #endBlock(): void {
    const packing = this.#packing;
    const block = this.#block;
    if (packing === undefined || this.#state !== 'writing' || block.length === 0) {
      this.flush();
      return;
    }
    const start = this.#end.position - this.#flushed;
    const plain = start === 0 ? block.firstFrom(PLAIN_HEAD) : 0;
    if (this.#flushed < plain) {
      this.#append(block.bytes.subarray(this.#flushed, plain));
      this.#flushed = plain;
    }
    const packed = packing(block.bytes.subarray(plain, block.length));
    if (this.#flushed > plain) this.#end.cutTo(start + plain);
    this.#flushed = 0;
    block.clear();
    this.#append(packed);
  }

  #checkOlder(): void {
    const { force, keepAs } = this.#options;
    // It is renamed when the first event comes, which is too late to find out that it cannot be.
    if (keepAs !== undefined) accessSync(dirname(realpathSync(this.path)), constants.W_OK);
    else if (!force) throw outputExists(this.path);
  }

  #makeEmpty(): void {
    this.#state = 'writing';
    const { fd } = this.#end.file;
    const stat = fstatSync(fd);
    if (!stat.isFile()) return;
    this.#end.isRegular = true;
    if (stat.size === 0 || this.#options.keepAs === undefined) {
      ftruncateSync(fd, 0);
      return;
    }
    try {
      // Another program may have taken it since it was opened.
      if (isAt(this.path, fd)) {
        const path = realpathSync(this.path);
        renameSync(path, path + this.#options.keepAs);
      }
      this.#end = new FileEnd(open(this.path, this.#options));
      this.#end.isRegular = true;
    } catch (error) {
      this.#state = 'failed';
      throw error instanceof RsptraceError ? error : cannotWrite(this.path, error);
    }
    closeSync(fd);
  }

  #write(bytes: Uint8Array, length: number): void {
    if (this.#gzip) {
      // Only the whole block can be unpacked.
      this.#block.clear();
      this.#append(this.#gzip.block(bytes.subarray(0, length)));
    } else this.#append(bytes.subarray(0, length));
    this.#block.clear();
  }

  #append(bytes: Uint8Array): void {
    const start = this.#end.position;
    try {
      this.#end.append(bytes);
    } catch (error) {
      this.#state = 'failed';
      this.#cutToWholeRecords(start);
      throw this.#writeFailed(error);
    }
  }

  #writeFailed(error: unknown): RsptraceError {
    const why = `cannot go on writing the trace ${this.path}: ${messageOf(error)}`;
    const hint = this.#options.isAppended === false ? nothingKept : writtenKept;
    return new RsptraceError('TRACE_WRITE_FAILED', why, { hint, cause: error });
  }

  /** `start`: where the write began that failed. */
  #cutToWholeRecords(start: number): void {
    const inFile = this.#flushed + this.#end.position - start;
    try {
      if (this.#end.isRegular) this.#end.cutTo(start - this.#flushed + this.#block.wholeUpTo(inFile));
    } catch {
      // The write's own error is thrown. Readers tolerate a torn last record.
    }
  }
}

function open(path: string, { lock }: OutputOptions): OpenedFile {
  try {
    return lock === undefined ? openUntouched(path) : openLocked(path, lock);
  } catch (error) {
    throw error instanceof RsptraceError ? error : cannotWrite(path, error);
  }
}

function cannotWrite(path: string, error: unknown): RsptraceError {
  const hint = isCode(error, 'ENOENT') ? 'The folder has to exist.' : 'Name a file that can be written with -o.';
  return new RsptraceError('OUTPUT_CANNOT_WRITE', `cannot write the trace to ${path}: ${messageOf(error)}`, {
    hint,
    cause: error,
  });
}

/** The end of an open file, where it grows. */
class FileEnd {
  readonly file: OpenedFile;
  /** Bytes written. */
  position = 0;
  /** What was written last can be replaced. */
  isRegular = false;

  constructor(file: OpenedFile) {
    this.file = file;
  }

  /** After an error the position is behind what was written. */
  append(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) {
      const at = this.isRegular ? this.position : null;
      const written = writeSync(this.file.fd, bytes, done, bytes.length - done, at);
      done += written;
      this.position += written;
    }
  }

  cutTo(position: number): void {
    ftruncateSync(this.file.fd, position);
    this.position = position;
  }
}
