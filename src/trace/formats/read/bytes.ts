import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { messageOf, RsptraceError } from '../../../base/errors.js';
import { isCode } from '../../../base/locked-file.js';
import { Damage } from './fields.js';

const CHUNK = 1024 * 1024;

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
  await using file = await open(path, 'r');
  if ((await file.stat()).isDirectory()) throw new Error('it is a folder, and none of uftrace');
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
    try {
      yield* unpacked;
    } catch (error) {
      if (isCode(error, 'Z_BUF_ERROR')) this.isCut = true;
      else if (/^Z_/.test((error as NodeJS.ErrnoException).code ?? '')) throw new Damage(messageOf(error));
      else throw unreadable(this.#path, error);
    } finally {
      file.destroy();
    }
  }
}

function unreadable(path: string, cause: unknown): RsptraceError {
  return new RsptraceError('TRACE_UNREADABLE', `cannot read the trace ${path}: ${messageOf(cause)}`, {
    hint: 'name a .pftrace or .pftrace.gz that rsptrace has written',
    cause,
  });
}
