import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import type { ByteSource, BytesInPart } from './byte-source.js';

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
    return this.#source.read(...this.#checked(name, offset, size));
  }

  /** The same, read in part. */
  part(name: string, offset: number, size: number): BytesInPart {
    return this.#source.part(...this.#checked(name, offset, size));
  }

  #checked(name: string, offset: number, size: number): [number, number] {
    if (offset + size > this.#source.size) {
      throw this.damaged(`${name} at offset 0x${offset.toString(16)}, 0x${size.toString(16)} bytes, is past the end`);
    }
    return [offset, size];
  }

  reader(name: string, offset: number, size: number): ByteReader {
    return new ByteReader(this.range(name, offset, size), name);
  }

  /** A hash of all of them, which are not kept in memory. */
  hash(): string {
    const hash = createHash('sha1');
    for (const piece of this.#pieces(0, this.size)) hash.update(piece);
    return hash.digest('hex');
  }

  /** The CRC-32 of a range, which is not kept in memory either. */
  sum(name: string, offset: number, size: number): number {
    let sum = 0;
    for (const piece of this.#pieces(...this.#checked(name, offset, size))) sum = crc32(piece, sum);
    return sum;
  }

  /** Each is there until the next one. */
  *#pieces(offset: number, size: number): Generator<Uint8Array> {
    const bytes = new Uint8Array(Math.min(PIECE, size));
    for (let at = 0; at < size; at += PIECE) {
      const piece = bytes.subarray(0, size - at);
      this.#source.fill(piece, offset + at);
      yield piece;
    }
  }

  damaged(what: string): RsptraceError {
    return new RsptraceError('ELF_DAMAGED', `${this.path} is damaged: ${what}`, {
      hint: 'the file may have been cut off while it was copied; build it again',
    });
  }
}
