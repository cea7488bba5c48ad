import type { Budget } from '../base/budget.js';

/** Type names of deeply nested generic Rust code reach tens of kilobytes. */
const MAX_TEXT = 0x1_0000;

/** The same bytes as text that {@link textAt} reads from. */
export function asText(bytes: Uint8Array): Uint8Array {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * The zero-terminated UTF-8 text at an offset; undefined outside the bytes, or without an end. A text that is longer
 * than any name is cut. Its cost is charged, because names of a damaged file may all point into one endless text.
 * `what` names it in the budget's error.
 */
export function textAt(texts: Uint8Array, offset: number, budget: Budget, what: string): string | undefined {
  const bytes = texts instanceof Buffer ? texts : Buffer.from(texts.buffer, texts.byteOffset, texts.byteLength);
  if (!(offset < bytes.length)) return undefined;
  const end = bytes.indexOf(0, offset);
  const length = (end < 0 ? bytes.length : end) - offset;
  if (length > MAX_TEXT) budget.spend(length >> 8, what);
  if (end < 0) return undefined;
  budget.spend(1 + (Math.min(length, MAX_TEXT) >> 2), what);
  return length > MAX_TEXT
    ? `${bytes.toString('utf8', offset, offset + MAX_TEXT)}...`
    : bytes.toString('utf8', offset, end);
}
