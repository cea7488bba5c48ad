import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';

/**
 * The bytes of a file, in memory or read piece by piece: a kernel with debug info is larger than the part that is
 * used.
 */
export interface ByteSource {
  readonly size: number;
  /** A range inside the file. The caller has checked it against `size`. */
  read(offset: number, length: number): Uint8Array;
}

export class MemorySource implements ByteSource {
  readonly size: number;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.size = bytes.length;
  }

  read(offset: number, length: number): Uint8Array {
    return this.#bytes.subarray(offset, offset + length);
  }
}

const BLOCK = 0x1_0000;

/**
 * A file that is opened for each piece and closed again, so that nothing is held between reads. The last small block
 * is kept. A file that has changed since it was first seen throws `ELF_CHANGED`, because offsets read earlier would
 * point into something else.
 */
export class FileSource implements ByteSource {
  readonly size: number;
  readonly #path: string;
  readonly #identity: string;
  #block: Uint8Array = new Uint8Array(0);
  #blockAt = 0;

  constructor(path: string) {
    this.#path = path;
    // Opening a pipe would wait for who writes it.
    if (!statSync(path).isFile()) throw new Error('it is no regular file');
    const fd = openSync(path, 'r');
    try {
      const stat = fstatSync(fd, { bigint: true });
      this.size = Number(stat.size);
      this.#identity = `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}`;
    } finally {
      closeSync(fd);
    }
  }

  read(offset: number, length: number): Uint8Array {
    if (length > BLOCK / 2) return this.#load(offset, length);
    if (offset < this.#blockAt || offset + length > this.#blockAt + this.#block.length) {
      this.#block = this.#load(offset, Math.min(BLOCK, this.size - offset));
      this.#blockAt = offset;
    }
    return this.#block.subarray(offset - this.#blockAt, offset - this.#blockAt + length);
  }

  #load(offset: number, length: number): Uint8Array {
    let fd: number;
    try {
      fd = openSync(this.#path, 'r');
    } catch (cause) {
      throw this.#changed(cause);
    }
    try {
      const stat = fstatSync(fd, { bigint: true });
      if (`${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}` !== this.#identity) throw this.#changed();
      const bytes = new Uint8Array(length);
      for (let done = 0; done < length; ) {
        const got = readSync(fd, bytes, done, length - done, offset + done);
        if (got === 0) throw this.#changed();
        done += got;
      }
      return bytes;
    } finally {
      closeSync(fd);
    }
  }

  #changed(cause?: unknown): RsptraceError {
    return new RsptraceError('ELF_CHANGED', `${this.#path} changed while it was being read`, {
      hint: 'start again once the build is done',
      cause,
    });
  }
}
