/*
 * A process's memory in large pieces: /proc/PID/mem, opened here if the process runs on this machine, else by the stub
 * (vFile). It is used only if it shows what the stub's own reads show.
 */

import { closeSync, openSync, readSync } from 'node:fs';
import { type Addr, addOffset } from '../base/addr.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { pidOf, type Session } from '../rsp/index.js';
import { type Mapping, parseMaps } from './process-maps.js';

/** Bytes that both ways of reading must agree about. */
const COMPARED = 128;

export interface ProcessMemory extends MemoryReader, AsyncDisposable {
  /** How it is read, for the log. */
  readonly source: 'this machine' | "the stub's file" | 'packets';
}

/** The process at a stub, and what it has mapped; undefined if the stub does not tell. */
export async function processMappings(session: Session): Promise<readonly Mapping[] | undefined> {
  const pid = await processId(session);
  const text = pid === undefined ? undefined : await session.remoteFile(`/proc/${pid}/maps`);
  return text && parseMaps(new TextDecoder('latin1').decode(text));
}

/** Opens the fastest way to read it. `known` is an address of which all ways must show the same. */
export async function processMemory(session: Session, known: Addr): Promise<ProcessMemory> {
  const packets = session.memory();
  const pid = await processId(session);
  if (pid !== undefined) {
    const path = `/proc/${pid}/mem`;
    const expected = await packets.read(known, COMPARED);
    const openers = session.localProcess === pid ? [async () => openHere(path)] : [];
    for (const open of [...openers, () => openThere(session, path)]) {
      const memory = await open();
      const got = await memory?.read(known, COMPARED);
      if (memory && expected && got && Buffer.compare(expected, got) === 0) return memory;
      await memory?.[Symbol.asyncDispose]();
    }
  }
  return { source: 'packets', read: (at, length) => packets.read(at, length), [Symbol.asyncDispose]: async () => {} };
}

async function processId(session: Session): Promise<number | undefined> {
  const [first] = await session.harts();
  const pid = pidOf(first?.id);
  return pid === undefined ? undefined : Number.parseInt(pid, 16);
}

function openHere(path: string): ProcessMemory | undefined {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return undefined;
  }
  return {
    source: 'this machine',
    async read(address, length) {
      const bytes = new Uint8Array(length);
      try {
        for (let done = 0; done < length; ) {
          const got = readSync(file, bytes, done, length - done, addOffset(address, done));
          if (got === 0) return undefined;
          done += got;
        }
        return bytes;
      } catch {
        // EIO: a page that is not mapped.
        return undefined;
      }
    },
    [Symbol.asyncDispose]: async () => closeSync(file),
  };
}

async function openThere(session: Session, path: string): Promise<ProcessMemory | undefined> {
  const file = await session.openRemoteFile(path);
  if (file === undefined) return undefined;
  return {
    source: "the stub's file",
    // A file's offset is exact below 2^53, where Linux has all of a process.
    read: async (address, length) => (address < 2n ** 52n ? file.read(Number(address), length) : undefined),
    [Symbol.asyncDispose]: async () => {
      if (session.state.kind === 'idle') await file.close();
    },
  };
}
