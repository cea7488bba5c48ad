import { closeSync, fstatSync, openSync, readlinkSync } from 'node:fs';
import { readFully, writeFully } from '../base/file-bytes.js';
import type { SharedMemory } from './scratch.js';

/**
 * Opens a memfd of another process (`/proc/PID/fd/N`). Undefined if it has none of that name and size: the process is
 * on another machine, belongs to another user, or has ended.
 */
export function openMemfd(path: string, name: string, size: number): SharedMemory | undefined {
  let file: number;
  try {
    if (readlinkSync(path) !== `/memfd:${name} (deleted)`) return undefined;
    file = openSync(path, 'r+');
  } catch {
    return undefined;
  }
  if (fstatSync(file).size !== size) {
    closeSync(file);
    return undefined;
  }
  return new Memfd(file, size);
}

/** Part of a file that other processes have mapped. */
class Memfd implements SharedMemory {
  readonly #file: number;
  readonly #size: number;
  #closed = false;

  constructor(file: number, size: number) {
    this.#file = file;
    this.#size = size;
  }

  read(offset: number, into: Uint8Array): void {
    this.#check(offset, into.length);
    if (!readFully(this.#file, into, offset)) throw new RangeError('the shared memory has become smaller');
  }

  write(offset: number, bytes: Uint8Array): void {
    this.#check(offset, bytes.length);
    writeFully(this.#file, bytes, offset);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#file);
  }

  #check(offset: number, length: number): void {
    if (this.#closed || !(offset >= 0) || offset + length > this.#size) {
      throw new RangeError(`${length} bytes at ${offset} are not inside the shared memory`);
    }
  }
}
