/*
 * A process's memory in large pieces: /proc/PID/mem, if a gdbserver of this machine traces the process. It must show
 * what the stub's own reads show. gdbserver itself cannot read that file at offsets beyond 2 GiB.
 */

import { closeSync, openSync, readSync } from 'node:fs';
import { type Addr, addOffset } from '../base/addr.js';
import type { MemoryReader } from '../base/memory-reader.js';
import type { Session } from '../rsp/index.js';
import type { CopyRoom } from './copy-room.js';
import { processId } from './process-maps.js';

/** Bytes that both ways of reading must agree about. */
const COMPARED = 128;

interface ProcessMemory extends MemoryReader, Disposable {
  /** How it is read, for the log. */
  readonly source: 'this machine' | 'packets';
}

/**
 * Opens the fastest way to read it. `known` is an address of which all ways must show the same. What is read lies in
 * `room` as long as it fits.
 */
export async function processMemory(session: Session, known: Addr, room?: CopyRoom): Promise<ProcessMemory> {
  const packets = session.memory();
  const pid = await processId(session);
  if (pid !== undefined && session.localProcess === pid) {
    const expected = await packets.read(known, COMPARED);
    const memory = memoryOfProcess(pid, room);
    const got = await memory?.read(known, COMPARED);
    if (memory && expected && got && Buffer.compare(expected, got) === 0) return memory;
    memory?.[Symbol.dispose]();
  }
  return { source: 'packets', read: (at, length) => packets.read(at, length), [Symbol.dispose]: () => {} };
}

/** A process of this machine; undefined if it may not be read. */
export function memoryOfProcess(pid: number, room?: CopyRoom): ProcessMemory | undefined {
  const path = `/proc/${pid}/mem`;
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return undefined;
  }
  return {
    source: 'this machine',
    async read(address, length) {
      const taken = room?.take(length);
      // Not cleared first: all of it is read.
      const bytes = taken ?? Buffer.allocUnsafeSlow(length);
      if (readAll(file, bytes, address)) return bytes;
      if (taken) room?.giveBack(taken);
      return undefined;
    },
    [Symbol.dispose]: () => closeSync(file),
  };
}

function readAll(file: number, bytes: Uint8Array, address: Addr): boolean {
  try {
    for (let done = 0; done < bytes.length; ) {
      const got = readSync(file, bytes, done, bytes.length - done, addOffset(address, done));
      if (got === 0) return false;
      done += got;
    }
    return true;
  } catch {
    // EIO: a page that is not mapped.
    return false;
  }
}
