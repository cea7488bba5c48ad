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
