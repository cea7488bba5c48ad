/*
 * GDB manual, "Host I/O Packets": files of the machine that the stub runs on. Opened for reading only.
 *
 *   vFile:open:HEXPATH,0,0 -> F fd      vFile:pread:fd,count,offset -> F n;bytes      vFile:close:fd      errors: F-1,errno
 */

import { Buffer } from 'node:buffer';
import { protocolError } from './framing.js';
import type { Ask } from './handshake.js';
import { hexNumber } from './hex.js';
import { packets } from './packets.js';

/** What a file of /proc may have at most. */
const LARGEST_FILE = 16 * 1024 * 1024;

/** The whole of a file on the stub's machine; undefined where the stub reads none or refuses this one. Throws `RSP_PROTOCOL`. */
export async function readRemoteFile(ask: Ask, path: string, packetSize: number): Promise<Buffer | undefined> {
  const opened = await ask(packets.openFile(path));
  const file = opened.startsWith('F') ? hexNumber(opened.slice(1)) : undefined;
  if (file === undefined) return undefined;
  try {
    const pieces: Buffer[] = [];
    // An escaped byte takes two.
    const piece = (packetSize - 32) >> 1;
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
    }
    return undefined;
  } finally {
    await ask(packets.closeFile(file));
  }
}
