/*
 * A process's memory in large pieces: /proc/PID/mem, if a gdbserver of this machine traces the process. It must show
 * what the stub's own reads show. gdbserver itself cannot read that file at offsets beyond 2 GiB.
 */

import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { type Addr, addOffset, addr } from '../base/addr.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { entriesOf, textOf, tracerIn } from '../base/proc.js';
import { pidOf, type Session } from '../rsp/index.js';

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

/* proc(5), /proc/PID/maps: `start-end rwxp offset major:minor inode   path`, numbers in hex but the inode. */

export interface Mapping {
  readonly start: Addr;
  /** Behind its last byte. */
  readonly end: Addr;
  /** `r-xp`. */
  readonly permissions: string;
  /** Of its first byte, in the file. */
  readonly offset: number;
  /** The file's inode; 0 for anonymous memory. */
  readonly inode: number;
  /** Empty for anonymous memory. */
  readonly path: string;
}

const line = /^([0-9a-f]{1,16})-([0-9a-f]{1,16}) ([r-][w-][x-][ps]) ([0-9a-f]+) [0-9a-f]+:[0-9a-f]+ (\d+) *(.*)$/;

/** Of text as latin1, which paths are not: the kernel has their bytes. Lines of another form are skipped. */
export function parseMaps(text: string): Mapping[] {
  const found: Mapping[] = [];
  for (const each of text.split('\n')) {
    const [, start, end, permissions = '', at = '', inode, path = ''] = line.exec(each) ?? [];
    if (start === undefined || end === undefined) continue;
    const [from, to, offset] = [BigInt(`0x${start}`), BigInt(`0x${end}`), Number.parseInt(at, 16)];
    const name = Buffer.from(path, 'latin1').toString('utf8');
    found.push({ start: addr(from), end: addr(to), permissions, offset, inode: Number(inode), path: name });
  }
  return found;
}

/** Those of a process of this machine; none if it may not be looked into. */
export function mapsOf(pid: number | string): Mapping[] {
  return parseMaps(textOf(`/proc/${pid}/maps`));
}

/** The number of the process at a stub. */
export async function processId(session: Session): Promise<number | undefined> {
  const [first] = await session.harts();
  const pid = pidOf(first?.id);
  return pid === undefined ? undefined : Number.parseInt(pid, 16);
}

/** What it has mapped; undefined if the stub does not say. */
export async function processMappings(session: Session): Promise<readonly Mapping[] | undefined> {
  const pid = await processId(session);
  const text = pid === undefined ? undefined : await session.remoteFile(`/proc/${pid}/maps`);
  return text && parseMaps(new TextDecoder('latin1').decode(text));
}

/*
 * Room for a copy of a process's memory, made before the process stands. The kernel gives a page of it when it is first
 * written to, and that takes as long as the copy itself.
 */

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
      if (tracerIn(textOf(`/proc/${pid}/status`)) !== undefined && isSameFile(`/proc/${pid}/exe`, path))
        most = Math.max(most, writableBytes(pid));
    } catch {
      // It has ended, or is another user's.
    }
  }
  return new CopyRoom(most > LARGEST ? 0 : most);
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
