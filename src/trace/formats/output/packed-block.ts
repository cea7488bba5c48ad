import { constants, crc32, deflateRawSync } from 'node:zlib';
/** How a format makes one record of a block of whole ones. */
export interface Packing {
  readonly pack: (records: Uint8Array) => Uint8Array;
  /** The first bytes of a record that takes so many bytes and that readers skip, whatever is behind them in it. */
  readonly skipped: (length: number) => Uint8Array;
  /** How many these are. The shortest packed block is longer. */
  readonly skippedHead: number;
}

/** A change of a file: bytes that are written at an offset, or an offset from which on everything is cut off. */
export type FileChange = { readonly at: number; readonly bytes: Uint8Array } | { readonly cutTo: number };

/**
 * Replaces the records from `start` to the end of a file by the block that they are packed in. After each change the
 * file can be read and has every record once, also if only a part of a long write was done. The short writes are as
 * long as the head of a skipped record.
 *
 *        plain records                                 as it was
 *     1. plain records | skip( packed )                the block is written behind, where no reader looks
 *     2. skip( ............. ) packed                  from now on it is read, and the plain records are not
 *     3. skip( packed' | skip ) packed                 written to its place, but for its first bytes
 *     4. packed | skip( ............ )                 the first bytes
 *     5. packed                                        the file is cut
 */
export function* replacement(
  { pack: _, skipped, skippedHead }: Packing,
  { start, end }: { readonly start: number; readonly end: number },
  packed: Uint8Array,
): Generator<FileChange> {
  const padding = Math.max(0, packed.length - (end - start));
  const length = skippedHead + padding + packed.length;
  const hidden = new Uint8Array(length);
  hidden.set(skipped(length));
  hidden.set(packed, skippedHead + padding);
  yield { at: end, bytes: hidden };
  const before = end + skippedHead + padding - start;
  yield { at: start, bytes: skipped(before) };
  const moved = new Uint8Array(packed.length);
  moved.set(packed.subarray(skippedHead));
  moved.set(skipped(before), packed.length - skippedHead);
  yield { at: start + skippedHead, bytes: moved };
  yield { at: start, bytes: packed.subarray(0, skippedHead) };
  yield { cutTo: start + packed.length };
}

/** RFC 1952, section 2.3: the magic number, deflate, no flags, no time, no extra flags, an unknown system. */
const HEADER = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255);

/** An empty last block (RFC 1951, section 3.2.6). */
const LAST_BLOCK = [3, 0];

/** Traces repeat themselves: more effort makes them hardly smaller. */
const LEVEL = 3;

/**
 * One gzip member (RFC 1952), block by block and synchronously. Each block ends at a byte (Z_SYNC_FLUSH) and knows
 * nothing of those before. So a file without its end can be unpacked up to its last whole block.
 */
export class GzipBlocks {
  #crc = 0;
  #length = 0;
  #hasBegun = false;

  /** The next part of the file: with its header, the first time. */
  block(bytes: Uint8Array): Uint8Array {
    this.#crc = crc32(bytes, this.#crc);
    this.#length += bytes.length;
    const packed = deflateRawSync(bytes, { level: LEVEL, finishFlush: constants.Z_SYNC_FLUSH });
    const begins = !this.#hasBegun;
    this.#hasBegun = true;
    return begins ? Buffer.concat([HEADER, packed]) : packed;
  }

  /** The file's last bytes. */
  end(): Uint8Array {
    const begin = this.#hasBegun ? [] : [...HEADER];
    const trailer = new DataView(new ArrayBuffer(8));
    trailer.setUint32(0, this.#crc, true);
    trailer.setUint32(4, this.#length % 2 ** 32, true);
    return Uint8Array.from([...begin, ...LAST_BLOCK, ...new Uint8Array(trailer.buffer)]);
  }
}
