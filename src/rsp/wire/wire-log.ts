/*
 * Wire recordings, as docs/internals/wire.md has them. UTF-8 text, one JSON object a line.
 *
 *   {"rsptrace_wire":1}                                        the first line: the version
 *   {"rsptrace_wire":1,"launched":true}                        the same, if the client has started the target itself
 *   {"t":0,"event":"open","remote":"localhost:1234"}           a connection stands
 *   {"t":0.213,"to":"stub","text":"+$qSupported:...#c6"}       bytes as characters U+0000 to U+00FF, one each
 *   {"t":0.871,"to":"client","text":"+$PacketSize=1000...#ab"}
 *   {"t":9.1,"event":"closed","by":"stub"}                     or "client"
 *
 * `t` is milliseconds since the recording began. Fields that are not known are passed over. Refused: other versions,
 * lines beyond 16 MiB, lines that are none of these. A last line without its line feed was cut off and is left out.
 */

import { Buffer } from 'node:buffer';
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { messageOf, RsptraceError } from '../../base/errors.js';
import { holdsBytes, openUntouched, outputExists } from '../../base/locked-file.js';
import { type Logger, silent } from '../../base/logger.js';
import type { RemoteAddress } from './address.js';

/** One line of a recording, behind the first. */
export type WireEntry =
  | { readonly line: number; readonly kind: 'bytes'; readonly to: 'stub' | 'client'; readonly text: string }
  | { readonly line: number; readonly kind: 'open' }
  | { readonly line: number; readonly kind: 'closed'; readonly by: 'stub' | 'client' };

const VERSION = 1;
const LONGEST_LINE = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Writes down what passes over a wire, line by line as it comes, so that a killed tracer leaves a recording. */
export class WireRecorder implements Disposable {
  readonly path: string;
  readonly #logger: Logger;
  readonly #began = performance.now();
  #fd: number | undefined;

  /**
   * Makes the file, or takes `open`, which is empty. Throws `OUTPUT_EXISTS`, or `OUTPUT_CANNOT_WRITE` if that fails.
   * `launched`: the client starts the target itself.
   */
  constructor(path: string, logger: Logger = silent, launched = false, open?: number) {
    this.path = path;
    this.#logger = logger;
    try {
      this.#fd = open ?? openUntouched(path).fd;
      if (holdsBytes(this.#fd)) throw outputExists(path);
      writeSync(this.#fd, `${JSON.stringify({ rsptrace_wire: VERSION, ...(launched ? { launched } : {}) })}\n`);
    } catch (error) {
      this[Symbol.dispose]();
      if (error instanceof RsptraceError) throw error;
      throw new RsptraceError('OUTPUT_CANNOT_WRITE', `The wire cannot be recorded in ${path}: ${messageOf(error)}`, {
        hint: 'Name a file that can be written with --record-wire',
        cause: error,
      });
    }
  }

  opened(remote: string): void {
    this.#line({ event: 'open', remote });
  }

  bytes(to: 'stub' | 'client', bytes: Uint8Array, length: number): void {
    if (this.#fd === undefined) return;
    this.#line({ to, text: Buffer.from(bytes.buffer, bytes.byteOffset, length).toString('latin1') });
  }

  closed(by: 'stub' | 'client'): void {
    this.#line({ event: 'closed', by });
  }

  [Symbol.dispose](): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
  }

  /** If the file can no longer be written, the wire recording ends, but the trace goes on. */
  #line(what: object): void {
    if (this.#fd === undefined) return;
    const t = Math.round((performance.now() - this.#began) * 1000) / 1000;
    const bytes = Buffer.from(`${JSON.stringify({ t, ...what })}\n`);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.#fd, bytes, done);
    } catch (error) {
      this.#logger.warn({ file: this.path, error: messageOf(error) }, 'the recording of the wire ends here');
      this[Symbol.dispose]();
    }
  }
}

/** Whether this is a recording of a target that its client had started. Throws `RSP_REPLAY_UNREADABLE`. */
export function wasLaunched(remote: RemoteAddress): boolean {
  if (remote.kind !== 'replay') return false;
  using reader = new WireReader(remote.path);
  return reader.launched;
}

/** Reads a recording line by line, in memory of a fixed size. */
export class WireReader implements Disposable {
  readonly path: string;
  /** The client had started the target itself, so its first requests differ from those to other targets. */
  readonly launched: boolean;
  readonly #fd: number;
  #buffer = Buffer.allocUnsafe(64 * 1024);
  #start = 0;
  #end = 0;
  #atEnd = false;
  #closed = false;
  #line = 0;

  /** Opens a recording; `RSP_REPLAY_UNREADABLE` when there is none. */
  constructor(path: string) {
    this.path = path;
    try {
      this.#fd = openSync(path, 'r');
    } catch (error) {
      throw this.#unreadable(messageOf(error), error);
    }
    try {
      const first = this.#next();
      const { rsptrace_wire: version, launched } = (first === undefined ? undefined : parse(first)) ?? {};
      if (typeof version !== 'number') throw this.#unreadable('it does not begin with {"rsptrace_wire":1}');
      if (version !== VERSION) throw this.#unreadable(`it has version ${version}, this rsptrace reads ${VERSION}`);
      this.launched = launched === true;
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  /** The next entry; undefined at the end, or where the recording was cut off. Throws `RSP_REPLAY_UNREADABLE`. */
  read(): WireEntry | undefined {
    for (;;) {
      const text = this.#next();
      if (text === undefined) return undefined;
      const { to, text: bytes, event, by, t } = parse(text) ?? {};
      const line = this.#line;
      if (typeof t !== 'number') throw this.#unreadable(`line ${line} is damaged`);
      if ((to === 'stub' || to === 'client') && typeof bytes === 'string' && !/[^\0-\xff]/.test(bytes)) {
        return { line, kind: 'bytes', to, text: bytes };
      }
      if (event === 'open') return { line, kind: 'open' };
      if (event === 'closed' && (by === 'stub' || by === 'client')) return { line, kind: 'closed', by };
      if (to !== undefined || event === 'closed') throw this.#unreadable(`line ${line} is damaged`);
    }
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#fd);
  }

  #next(): string | undefined {
    let searched = this.#start;
    for (;;) {
      const found = this.#buffer.subarray(0, this.#end).indexOf(NEWLINE, searched);
      if (found >= 0) {
        const text = this.#buffer.toString('utf8', this.#start, found);
        this.#start = found + 1;
        this.#line++;
        return text;
      }
      searched = this.#end - this.#start;
      if (!this.#fill()) return undefined;
    }
  }

  #fill(): boolean {
    if (this.#atEnd) return false;
    this.#buffer.copyWithin(0, this.#start, this.#end);
    this.#end -= this.#start;
    this.#start = 0;
    if (this.#end === this.#buffer.length) {
      if (this.#end >= LONGEST_LINE) throw this.#unreadable(`line ${this.#line + 1} is too long`);
      this.#buffer = Buffer.concat([this.#buffer], this.#buffer.length * 2);
    }
    let got: number;
    try {
      got = readSync(this.#fd, this.#buffer, this.#end, this.#buffer.length - this.#end, null);
    } catch (error) {
      throw this.#unreadable(messageOf(error), error);
    }
    this.#end += got;
    this.#atEnd = got === 0;
    return got > 0;
  }

  #unreadable(why: string, cause?: unknown): RsptraceError {
    return new RsptraceError('RSP_REPLAY_UNREADABLE', `${this.path} cannot be replayed: ${why}`, {
      hint: 'give a file that --record-wire has written',
      cause,
    });
  }
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
