import { closeSync, ftruncateSync, openSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import type { Refusal } from '../base/errors.js';
import { messageOf } from '../base/errors.js';
import type { SharedMemory } from './scratch.js';
import { inFile, sharedMemory } from './shared-memory.js';

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
    const { read, write } = inFile(this.#fd, offset);
    return sharedMemory({
      size,
      gone: 'The shared memory was closed or cut off',
      read: (at, into) => this.#open && read(at, into),
      write: (at, bytes) => this.#open && write(at, bytes),
    });
  }

  [Symbol.dispose](): void {
    if (this.#open) closeSync(this.#fd);
    this.#open = false;
  }
}
