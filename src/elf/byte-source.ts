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
  /** The same, whose bytes are zeros until they are needed. */
  part(offset: number, length: number): BytesInPart;
  /** Fills an array with what is not read again. */
  fill(bytes: Uint8Array, offset: number): void;
}

/** Bytes of which only what is needed is read. */
export interface BytesInPart {
  readonly bytes: Uint8Array;
  /** Reads those from one index to another one, as far as there are any. To be called before they are looked at. */
  need(from: number, to: number): void;
}

/** The same of what is there. */
export function wholly(bytes: Uint8Array): BytesInPart {
  return { bytes, need: () => {} };
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

  part(offset: number, length: number): BytesInPart {
    return wholly(this.read(offset, length));
  }

  fill(bytes: Uint8Array, offset: number): void {
    bytes.set(this.#bytes.subarray(offset, offset + bytes.length));
  }
}

const BLOCK = 0x4000;
/** Of a larger file every range that is read is an array of its own. */
const MOST_KEPT = 1 << 30;

/**
 * A file that is opened for each piece and closed again, so that nothing is held between reads. What was read is kept
 * in one array as large as the file, so code that is read function by function is there once. Linux gives memory only
 * to the pages of it that are written. A file that has changed since it was first seen throws `ELF_CHANGED`,
 * because offsets read earlier would point into something else.
 */
export class FileSource implements ByteSource {
  readonly size: number;
  readonly #path: string;
  readonly #identity: string;
  #bytes: Uint8Array | undefined;
  /** Whether a block of {@link #bytes} was read. */
  #isRead = new Uint8Array(0);

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
    if (this.size > MOST_KEPT) {
      const bytes = new Uint8Array(length);
      this.fill(bytes, offset);
      return bytes;
    }
    const { bytes, need } = this.part(offset, length);
    need(0, length);
    return bytes;
  }

  part(offset: number, length: number): BytesInPart {
    if (this.size > MOST_KEPT) return wholly(this.read(offset, length));
    this.#bytes ??= new Uint8Array(this.size);
    if (this.#isRead.length === 0) this.#isRead = new Uint8Array(Math.ceil(this.size / BLOCK));
    return {
      bytes: this.#bytes.subarray(offset, offset + length),
      need: (from, to) => this.#need(this.#bytes as Uint8Array, offset + from, offset + Math.min(to, length)),
    };
  }

  #need(bytes: Uint8Array, from: number, to: number): void {
    const end = Math.ceil(to / BLOCK);
    for (let block = Math.floor(from / BLOCK); block < end; block++) {
      if (this.#isRead[block] === 1) continue;
      let last = block + 1;
      while (last < end && this.#isRead[last] !== 1) last++;
      this.fill(bytes.subarray(block * BLOCK, last * BLOCK), block * BLOCK);
      this.#isRead.fill(1, block, last);
    }
  }

  fill(bytes: Uint8Array, offset: number): void {
    let fd: number;
    try {
      fd = openSync(this.#path, 'r');
    } catch (cause) {
      throw this.#changed(cause);
    }
    try {
      const stat = fstatSync(fd, { bigint: true });
      if (`${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}` !== this.#identity) throw this.#changed();
      for (let done = 0; done < bytes.length; ) {
        const got = readSync(fd, bytes, done, bytes.length - done, offset + done);
        if (got === 0) throw this.#changed();
        done += got;
      }
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
