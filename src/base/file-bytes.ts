import { closeSync, fstatSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { constants, gunzipSync } from 'node:zlib';
import type { Budget } from './budget.js';

/**
 * Fills `into` with a file's bytes from `position` on. False if the file ends before.
 * @throws the system's error: EIO where a file of memory has a hole
 */
export function readFully(file: number, into: Uint8Array, position: number): boolean {
  for (let done = 0; done < into.length; ) {
    const got = readSync(file, into, done, into.length - done, position + done);
    if (got === 0) return false;
    done += got;
  }
  return true;
}

/** Writes all bytes at `position`. False if the file takes no more. */
export function writeFully(file: number, bytes: Uint8Array, position: number): boolean {
  for (let done = 0; done < bytes.length; ) {
    const put = writeSync(file, bytes, done, bytes.length - done, position + done);
    if (put === 0) return false;
    done += put;
  }
  return true;
}

const HEAD = 64 * 1024;

/** The beginning of a file, and its length. */
export interface FileHead {
  readonly bytes: Uint8Array;
  readonly size: number;
}

/** Undefined for an empty file, and for one that is no regular file. */
export function headOf(path: string): FileHead | undefined {
  // Checked before it is opened, because a pipe would wait for a writer.
  if (!statSync(path).isFile()) return undefined;
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    if (size === 0) return undefined;
    const bytes = new Uint8Array(Math.min(HEAD, size));
    return { bytes: bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0)), size };
  } finally {
    closeSync(fd);
  }
}

/** Its first 4 KiB as text, a character a byte: enough to say what kind of file it is. */
export function startOf({ bytes }: FileHead): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 4096)).toString('latin1');
}

/** The beginning of what a gzip file (RFC 1952) holds; that of another file, and of a damaged one, as it is. */
export function unpackedStart(bytes: Uint8Array): Uint8Array {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  try {
    return gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
  } catch {
    return bytes;
  }
}

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
