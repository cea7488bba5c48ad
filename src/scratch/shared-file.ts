import { closeSync, ftruncateSync, openSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, RsptraceError } from '../base/errors.js';
import { readFully, writeFully } from '../base/file-bytes.js';
import type { Refusal } from '../base/refusal.js';
import type { SharedMemory } from './scratch.js';

/** Files that live in memory only. */
const folder = '/dev/shm';

/**
 * A file in memory that a QEMU can use as its RAM. It never has a name, so nothing is left behind however this
 * process ends. QEMU opens it by our file descriptor.
 */
export class SharedFile implements Disposable {
  readonly size: number;
  readonly #fd: number;
  #open = true;

  private constructor(fd: number, size: number) {
    this.#fd = fd;
    this.size = size;
  }

  /**
   * A file of zeros. Refused if there is no room for all of it, because a full file system would kill the QEMU that
   * writes to it.
   */
  static create(size: number): SharedFile | Refusal {
    const path = join(folder, `rsptrace-${process.pid}-${process.hrtime.bigint().toString(36)}`);
    try {
      const { bavail, bsize } = statfsSync(folder);
      if (bavail * bsize < size) {
        return {
          refused: `${folder} has ${Math.floor((bavail * bsize) / 2 ** 20)} MiB left for ${size / 2 ** 20} MiB of RAM`,
        };
      }
      const fd = openSync(path, 'wx+', 0o600);
      rmSync(path);
      ftruncateSync(fd, size);
      return new SharedFile(fd, size);
    } catch (error) {
      return { refused: `no file can be made in ${folder}: ${messageOf(error)}` };
    }
  }

  /** The path by which another process of the same user opens it while this one runs. */
  get path(): string {
    return `/proc/${process.pid}/fd/${this.#fd}`;
  }

  /** The piece at `offset` of the file. Closing the piece leaves the file open. */
  piece(offset: number, size: number): SharedMemory {
    if (offset < 0 || size < 0 || offset + size > this.size) throw new RangeError('a piece outside the shared file');
    let open = true;
    const check = (at: number, length: number): void => {
      if (!open || !this.#open) throw new RsptraceError('SCRATCH_CLOSED', 'The shared memory was closed');
      if (at < 0 || at + length > size) throw new RangeError(`bytes ${at}..${at + length} of ${size} shared ones`);
    };
    return {
      read: (at, into) => {
        check(at, into.length);
        if (!readFully(this.#fd, into, offset + at)) {
          throw new RsptraceError('SCRATCH_CLOSED', 'The shared memory has been cut off');
        }
      },
      write: (at, bytes) => {
        check(at, bytes.length);
        writeFully(this.#fd, bytes, offset + at);
      },
      close: () => {
        open = false;
      },
    };
  }

  [Symbol.dispose](): void {
    if (this.#open) closeSync(this.#fd);
    this.#open = false;
  }
}
