import { fromHalves, putLow } from './addr.js';

/** `size` bytes from an offset on as an unsigned number; those behind the end are zero. */
export function littleEndian(bytes: Uint8Array, at = 0, size = bytes.length - at): bigint {
  const end = Math.min(at + size, bytes.length);
  if (size <= 8) return fromHalves(half(bytes, at, end), half(bytes, at + 4, end));
  let value = 0n;
  for (let from = at + ((size - 1) & ~3); from >= at; from -= 4)
    value = (value << 32n) | BigInt(half(bytes, from, end));
  return value;
}

/** Up to four bytes as an unsigned number. */
function half(bytes: Uint8Array, at: number, end: number): number {
  let value = 0;
  for (let i = Math.min(at + 4, end) - 1; i >= at; i--) value = value * 256 + (bytes[i] as number);
  return value;
}

/** `value` as `size` little-endian bytes; higher bits are cut off. */
export function littleEndianBytes(value: bigint, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let rest = value;
  for (let at = 0; at < size; at += 8, rest >>= 64n) putLow(rest, bytes, at, Math.min(8, size - at));
  return bytes;
}
