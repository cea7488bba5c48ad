/*
 * Room for a copy of a process's memory, made before the process stands. The kernel gives a page of it when it is first
 * written to, and that takes as long as the copy itself.
 */

import { statSync } from 'node:fs';
import { entriesOf, textOf } from '../base/proc.js';
import { mapsOf } from './process-maps.js';

/** A copy of more is made without it. */
const LARGEST = 2 ** 29;
const PAGE = 4096;

export class CopyRoom {
  readonly #all: Uint8Array;
  #left: Uint8Array;

  constructor(length: number) {
    this.#all = new Uint8Array(length);
    this.#left = this.#all;
    for (let at = 0; at < length; at += PAGE) this.#left[at] = 1;
  }

  /** So many bytes, which hold anything; undefined if no more are left. */
  take(length: number): Uint8Array | undefined {
    if (length > this.#left.length) return undefined;
    const taken = this.#left.subarray(0, length);
    this.#left = this.#left.subarray(length);
    return taken;
  }

  /** Takes back all of it. */
  empty(): void {
    this.#left = this.#all;
  }

  /** Takes back the bytes that were taken last. */
  giveBack(taken: Uint8Array): void {
    this.#left = new Uint8Array(taken.buffer, taken.byteOffset, taken.length + this.#left.length);
  }
}

/** As much as the largest process that is traced on this machine and runs this file can write to. */
export function roomForCopy(path: string): CopyRoom {
  let most = 0;
  for (const pid of entriesOf('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (isTraced(pid) && isSameFile(`/proc/${pid}/exe`, path)) most = Math.max(most, writableBytes(pid));
    } catch {
      // It has ended, or is another user's.
    }
  }
  return new CopyRoom(most > LARGEST ? 0 : most);
}

function isTraced(pid: string): boolean {
  return !/^TracerPid:\s*0$/m.test(textOf(`/proc/${pid}/status`));
}

function isSameFile(one: string, other: string): boolean {
  const [a, b] = [statSync(one), statSync(other)];
  return a.ino === b.ino && a.dev === b.dev;
}

function writableBytes(pid: string): number {
  return mapsOf(pid)
    .filter(({ permissions, path }) => permissions.startsWith('rw') && !path.startsWith('/dev/'))
    .map(({ start, end }) => Number(end - start))
    .filter((length) => length <= LARGEST)
    .reduce((sum, length) => sum + length, 0);
}
