import type { Budget } from '../base/budget.js';

/** The same bytes as text that {@link textAt} reads from. */
export function asText(bytes: Uint8Array): Uint8Array {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * The zero-terminated UTF-8 text at an offset, whole; undefined outside the bytes, or without an end. Its cost is
 * charged, because names of a damaged file may all point into one endless text. `what` names it in the budget's error.
 */
export function textAt(texts: Uint8Array, offset: number, budget: Budget, what: string): string | undefined {
  const bytes = texts instanceof Buffer ? texts : Buffer.from(texts.buffer, texts.byteOffset, texts.byteLength);
  if (!(offset < bytes.length)) return undefined;
  const end = bytes.indexOf(0, offset);
  const length = (end < 0 ? bytes.length : end) - offset;
  budget.spend(1 + (length >> 2), what);
  return end < 0 ? undefined : bytes.toString('utf8', offset, end);
}
