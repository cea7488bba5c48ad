import { Buffer } from 'node:buffer';

/**
 * Hex as the protocol writes it: two digits a byte, lower case, registers in the target's byte order (little-endian for
 * both architectures). Read through a table, straight from the receive buffer into bytes.
 */

const DIGITS = new Int8Array(256).fill(-1);
for (let value = 0; value < 16; value++) {
  const digit = value.toString(16);
  DIGITS[digit.charCodeAt(0)] = value;
  DIGITS[digit.toUpperCase().charCodeAt(0)] = value;
}

/**
 * The byte that two digits are, by both as they lie in memory; -1 where they are none. 128 KiB that save half of the
 * time of {@link decodeHex}.
 */
const BYTES = new Int16Array(1 << 16).fill(-1);
for (const [first, high] of DIGITS.entries()) {
  if (high < 0) continue;
  for (const [second, low] of DIGITS.entries()) if (low >= 0) BYTES[first | (second << 8)] = (high << 4) | low;
}

const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** The value of an ASCII hex digit, or -1. */
export function hexDigit(code: number | undefined): number {
  return code === undefined ? -1 : (DIGITS[code] ?? -1);
}

/**
 * Decodes `from[start, end)` into `into` at `at`; false (with `into` partly written) when it is not whole hex or does
 * not fit.
 */
export function decodeHex(from: Uint8Array, start: number, end: number, into: Uint8Array, at: number): boolean {
  const length = end - start;
  if ((length & 1) !== 0 || at + (length >> 1) > into.length) return false;
  const digits = new DataView(from.buffer, from.byteOffset, from.length);
  const bytes = new DataView(into.buffer, into.byteOffset, into.length);
  let bad = 0;
  let index = start;
  let out = at;
  for (; index + 8 <= end; index += 8, out += 4) {
    const four = digits.getInt32(index, true);
    const more = digits.getInt32(index + 4, true);
    const a = BYTES[four & 0xffff] as number;
    const b = BYTES[four >>> 16] as number;
    const c = BYTES[more & 0xffff] as number;
    const d = BYTES[more >>> 16] as number;
    bad |= a | b | c | d;
    bytes.setInt32(out, a | (b << 8) | (c << 16) | (d << 24), true);
  }
  for (; index < end; index += 2, out++) {
    const byte = BYTES[digits.getUint16(index, true)] as number;
    bad |= byte;
    into[out] = byte;
  }
  return bad >= 0;
}

/** The bytes of a hex string, or undefined when it is not one. */
export function hexToBytes(text: string): Uint8Array | undefined {
  if ((text.length & 1) !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return undefined;
  return new Uint8Array(Buffer.from(text, 'hex'));
}

export function bytesToHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** `value` as `size` little-endian bytes in hex. */
export function littleEndianHex(value: bigint, size: number): string {
  let text = '';
  let rest = value;
  for (let done = 0; done < size; done += 4) {
    const word = Number(BigInt.asUintN(32, rest));
    for (let index = 0; index < 4 && done + index < size; index++) text += PAIRS[(word >>> (8 * index)) & 255];
    rest >>= 32n;
  }
  return text;
}

/** A field such as a signal or a status: 1 to 8 hex digits, or undefined. */
export function hexNumber(text: string): number | undefined {
  return /^[0-9a-fA-F]{1,8}$/.test(text) ? Number.parseInt(text, 16) : undefined;
}
