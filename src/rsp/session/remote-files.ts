/*
 * GDB manual, "Host I/O Packets": files of the machine that the stub runs on. Opened for reading only.
 *
 *   vFile:open:HEXPATH,0,0 -> F fd           vFile:pread:fd,count,offset -> F n;bytes
 *   vFile:close:fd                           errors: F-1,errno
 */

import { Buffer } from 'node:buffer';
import { protocolError } from '../wire/framing.js';
import { hexNumber } from '../wire/hex.js';
import { Deadline } from '../wire/reply-timeout.js';
import { type Batch, raw } from './batch.js';
import type { Ask } from './handshake.js';
import { packets } from './packets.js';

/** Larger than shared libraries without debug info, and than any file of /proc. */
const LARGEST_FILE = 128 * 1024 * 1024;

interface Pieces {
  readonly packetSize: number;
  readonly between?: (() => Promise<void>) | undefined;
}

/**
 * The whole of a file on the stub's machine; undefined if the stub reads no files or refuses this one. `between` is
 * called between two pieces. Throws `RSP_PROTOCOL`.
 */
export async function readRemoteFile(ask: Ask, path: string, how: Pieces): Promise<Uint8Array | undefined> {
  const opened = await ask(packets.openFile(path));
  const file = opened.startsWith('F') ? hexNumber(opened.slice(1)) : undefined;
  if (file === undefined) return undefined;
  try {
    const deadline = new Deadline(`reading ${path}`, ask.timeoutMs);
    const pieces: Buffer[] = [];
    // An escaped byte takes two.
    const piece = (how.packetSize - 32) >> 1;
    for (let offset = 0; offset <= LARGEST_FILE; ) {
      const answer = await ask(packets.readFile(file, piece, offset));
      const semicolon = answer.indexOf(';');
      const count = answer.startsWith('F') && semicolon > 1 ? hexNumber(answer.slice(1, semicolon)) : undefined;
      if (count === undefined) return undefined;
      const bytes = Buffer.from(answer.slice(semicolon + 1), 'latin1');
      if (bytes.length !== count) throw protocolError(`it answers ${bytes.length} of ${count} bytes of ${path}`);
      if (count === 0) return Buffer.concat(pieces);
      pieces.push(bytes);
      offset += count;
      deadline.check(offset);
      await how.between?.();
    }
    return undefined;
  } finally {
    await ask(packets.closeFile(file));
  }
}

/**
 * Requests in one write. With more, gdbserver takes longer (measured: 1, 4 and 28 of 9 KiB), because it answers each
 * before it reads the next.
 */
const WINDOW = 4;

/** A file on the stub's machine that stays open. It cannot be read while the target runs. */
export class RemoteFile {
  readonly #begin: () => Batch;
  readonly #file: number;
  readonly #piece: number;
  #open = true;

  private constructor(begin: () => Batch, file: number, packetSize: number) {
    this.#begin = begin;
    this.#file = file;
    // An escaped byte takes two.
    this.#piece = (packetSize - 32) >> 1;
  }

  /** Undefined if the stub opens no files or not this one. */
  static async open(begin: () => Batch, path: string, packetSize: number): Promise<RemoteFile | undefined> {
    const batch = begin();
    const opened = batch[raw](packets.openFile(path));
    await batch.send();
    const file = opened.value.startsWith('F') ? hexNumber(opened.value.slice(1)) : undefined;
    return file === undefined ? undefined : new RemoteFile(begin, file, packetSize);
  }

  /** Bytes of any length; undefined if not all of them can be read. */
  async read(offset: number, length: number): Promise<Uint8Array | undefined> {
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const batch = this.#begin();
      const replies: { readonly at: number; readonly reply: { readonly value: string } }[] = [];
      for (let at = done; at < length && replies.length < WINDOW; at += this.#piece) {
        const count = Math.min(this.#piece, length - at);
        replies.push({ at, reply: batch[raw](packets.readFile(this.#file, count, offset + at)) });
      }
      await batch.send();
      for (const { at, reply } of replies) {
        const got = dataOf(reply.value);
        if (got === undefined || got.length === 0 || at + got.length > length) return undefined;
        // After a short answer, the rest of it and everything behind it is requested again.
        if (at !== done) break;
        bytes.set(got, at);
        done += got.length;
      }
    }
    return bytes;
  }

  /** A second call does no harm. */
  async close(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    const batch = this.#begin();
    batch[raw](packets.closeFile(this.#file));
    await batch.send();
  }
}

function dataOf(answer: string): Buffer | undefined {
  const semicolon = answer.indexOf(';');
  const count = answer.startsWith('F') && semicolon > 1 ? hexNumber(answer.slice(1, semicolon)) : undefined;
  const bytes = Buffer.from(answer.slice(semicolon + 1), 'latin1');
  return bytes.length === count ? bytes : undefined;
}
