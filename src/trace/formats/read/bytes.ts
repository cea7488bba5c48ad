import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { budgetFactor } from '../../../base/budget.js';
import { messageOf, RsptraceError } from '../../../base/errors.js';
import { isCode } from '../../../base/locked-file.js';
import { Damage } from './fields.js';

const CHUNK = 1024 * 1024;
/** What a packed trace may unpack to: recordings take 3 to 30 times their packed size, gzip can pack 1000 to one. */
const UNPACKED = 2 ** 30;
const UNPACKED_PER_BYTE = 100;

/** What a file holds, unpacked if it is gzip (RFC 1952). `isCut` becomes true if its end is missing. */
export interface TraceBytes extends AsyncIterable<Uint8Array> {
  readonly isCut: boolean;
}

/** Opens a file. Throws `TRACE_UNREADABLE`; while it is read, also `Damage`. */
export async function openBytes(path: string): Promise<TraceBytes> {
  try {
    return new FileBytes(path, await isGzip(path));
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function isGzip(path: string): Promise<boolean> {
  const found = await stat(path);
  if (found.isDirectory()) throw new Error('it is a folder, and none of uftrace');
  // Opening a pipe would wait for who writes it, and a device may have no end.
  if (!found.isFile()) throw new Error('it is no regular file');
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0);
  return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
}

class FileBytes implements TraceBytes {
  readonly #path: string;
  readonly #isPacked: boolean;
  isCut = false;

  constructor(path: string, isPacked: boolean) {
    this.#path = path;
    this.#isPacked = isPacked;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const file = createReadStream(this.#path, { highWaterMark: CHUNK });
    if (!this.#isPacked) {
      try {
        yield* file;
      } catch (error) {
        throw unreadable(this.#path, error);
      }
      return;
    }
    const unpacked = file.on('error', (error) => unpacked.destroy(error)).pipe(createGunzip({ chunkSize: CHUNK }));
    // Who stops reading may do so between an error and its event.
    unpacked.on('error', () => {});
    let left = budgetFactor() * (UNPACKED + (await stat(this.#path)).size * UNPACKED_PER_BYTE);
    try {
      for await (const chunk of unpacked as AsyncIterable<Buffer>) {
        left -= chunk.length;
        if (left < 0) throw tooLarge(this.#path);
        yield chunk;
      }
    } catch (error) {
      if (isCode(error, 'Z_BUF_ERROR')) this.isCut = true;
      else if (/^Z_/.test((error as NodeJS.ErrnoException).code ?? '')) throw new Damage(messageOf(error));
      else throw error instanceof RsptraceError ? error : unreadable(this.#path, error);
    } finally {
      file.destroy();
    }
  }
}

function tooLarge(path: string): RsptraceError {
  return new RsptraceError('TRACE_TOO_LARGE', `${path} unpacks to over ${UNPACKED_PER_BYTE} times its size`, {
    hint: `record it again; where you trust it, set RSPTRACE_BUDGET=${budgetFactor() * 10} to allow ten times as much`,
  });
}

function unreadable(path: string, cause: unknown): RsptraceError {
  return new RsptraceError('TRACE_UNREADABLE', `cannot read the trace ${path}: ${messageOf(cause)}`, {
    hint: 'name a .pftrace or .pftrace.gz that rsptrace has written',
    cause,
  });
}
