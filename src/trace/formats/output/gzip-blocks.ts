import { constants, crc32, deflateRawSync } from 'node:zlib';

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
