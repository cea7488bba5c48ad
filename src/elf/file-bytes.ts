import { createHash } from 'node:crypto';
import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import type { ByteSource } from './byte-source.js';

const PIECE = 1 << 20;

/** The bytes of an ELF. Every range is checked before it is read. */
export class FileBytes {
  /** For messages. */
  readonly path: string;
  readonly #source: ByteSource;

  constructor(source: ByteSource, path: string) {
    this.#source = source;
    this.path = path;
  }

  get size(): number {
    return this.#source.size;
  }

  /** Throws `ELF_DAMAGED` if the file ends before the range does. `name` says what is read. */
  range(name: string, offset: number, size: number): Uint8Array {
    if (offset + size > this.#source.size) {
      throw this.damaged(`${name} at offset 0x${offset.toString(16)}, 0x${size.toString(16)} bytes, is past the end`);
    }
    return this.#source.read(offset, size);
  }

  reader(name: string, offset: number, size: number): ByteReader {
    return new ByteReader(this.range(name, offset, size), name);
  }

  /** A hash of all of them, read in pieces. */
  hash(): string {
    const hash = createHash('sha1');
    for (let at = 0; at < this.size; at += PIECE)
      hash.update(this.range('a part', at, Math.min(PIECE, this.size - at)));
    return hash.digest('hex');
  }

  damaged(what: string): RsptraceError {
    return new RsptraceError('ELF_DAMAGED', `${this.path} is damaged: ${what}`, {
      hint: 'the file may have been cut off while it was copied; build it again',
    });
  }
}
