import type { Addr } from './addr.js';

/**
 * Where bytes of the target come from: a live stub, an ELF's own segments, a dump, a recording. What cannot be read is
 * a value, not an exception: `undefined` when any of the bytes is unmapped.
 */
export interface MemoryReader {
  read(address: Addr, length: number): Promise<Uint8Array | undefined>;
}

/**
 * The registers of one hart at one stop, by the stub's own names (`a0`, `rdi`, `time`); unknown or unavailable is
 * `undefined`.
 */
export interface RegisterReader {
  register(name: string): bigint | undefined;
  /** Writes the low and the high half of it from `at` on, where that needs no bigint. False if it is not known. */
  halves?(name: string, into: Uint32Array, at: number): boolean;
}

const chunkBytes = 64 << 10;

let chunk = new Uint8Array(0);

let taken = 0;

/**
 * So many zero bytes, which share their buffer with others: thousands of array buffers would cost more than what is put
 * into them.
 */
export function someBytes(length: number): Uint8Array {
  if (taken + length > chunk.length) {
    chunk = new Uint8Array(Math.max(chunkBytes, length));
    taken = 0;
  }
  const piece = new Uint8Array(chunk.buffer, taken, length);
  taken += length;
  return piece;
}
