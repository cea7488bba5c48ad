import { closeSync, openSync } from 'node:fs';
import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { readFully, writeFully } from '../base/file-bytes.js';
import type { Region, SharedMemory } from './scratch.js';

/**
 * A piece of another process's memory, by `/proc/PID/mem` (proc_pid_mem(5)). Undefined if no process of this number may
 * be looked into from here. The number may be that of another machine's process: compare before anything is written.
 */
export function openProcessMemory(pid: number, { address, size }: Region): SharedMemory | undefined {
  try {
    return new ProcessMem(openSync(`/proc/${pid}/mem`, 'r+'), address, size);
  } catch {
    return undefined;
  }
}

class ProcessMem implements SharedMemory {
  readonly endsWithTarget = true;
  readonly #file: number;
  readonly #start: number;
  readonly #size: number;
  #closed = false;

  constructor(file: number, start: Addr, size: number) {
    this.#file = file;
    this.#start = Number(start);
    this.#size = size;
  }

  read(offset: number, into: Uint8Array): void {
    this.#access(offset, into.length, (at) => readFully(this.#file, into, at));
  }

  write(offset: number, bytes: Uint8Array): void {
    this.#access(offset, bytes.length, (at) => writeFully(this.#file, bytes, at));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#file);
  }

  #access(offset: number, length: number, access: (at: number) => boolean): void {
    if (this.#closed || !(offset >= 0) || offset + length > this.#size)
      throw new RangeError(`${length} bytes at ${offset} are not inside the shared memory`);
    let isThere = false;
    try {
      isThere = access(this.#start + offset);
    } catch {
      // Its memory has gone.
    }
    if (!isThere) throw new RsptraceError('SCRATCH_CLOSED', 'The process has ended');
  }
}
