import { readSync, writeSync } from 'node:fs';

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
