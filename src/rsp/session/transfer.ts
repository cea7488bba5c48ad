/*
 * GDB manual, "General Query Packets", qXfer: an object read in pieces, `m` data when there is more, `l` data at its
 * end. Refused: objects beyond 4 MiB or 16384 pieces, pieces that are empty without being the last.
 */

import { Buffer } from 'node:buffer';
import type { RsptraceError } from '../../base/errors.js';
import { protocolError } from '../wire/framing.js';
import { Deadline } from '../wire/reply-timeout.js';
import type { Ask } from './handshake.js';
import { packets } from './packets.js';

const LARGEST_OBJECT = 4 * 1024 * 1024;
/** As many as the largest object has of the smallest packets. */
const MOST_PIECES = LARGEST_OBJECT / 256;

/** Reads a whole object as UTF-8 text; undefined when the stub has none of that name. */
export async function readObject(
  ask: Ask,
  object: string,
  annex: string,
  packetSize: number,
): Promise<string | undefined> {
  const bytes = await readObjectBytes(ask, object, annex, packetSize);
  return bytes && Buffer.from(bytes).toString('utf8');
}

/** The same as bytes. */
export async function readObjectBytes(
  ask: Ask,
  object: string,
  annex: string,
  packetSize: number,
): Promise<Uint8Array | undefined> {
  const piece = Math.min(packetSize - 5, 64 * 1024);
  const deadline = new Deadline(`reading ${object} ${annex}`.trim(), ask.timeoutMs);
  let data = '';
  for (let pieces = 0; ; pieces++) {
    const answer = await ask(packets.transfer(object, annex, data.length, piece));
    const more = answer[0] === 'm';
    if (!more && answer[0] !== 'l' && data === '') return undefined;
    if (more ? answer.length === 1 : answer[0] !== 'l') throw inTheMiddle(object, answer);
    data += answer.slice(1);
    deadline.check(data.length);
    if (data.length > LARGEST_OBJECT || pieces > MOST_PIECES)
      throw protocolError(`its ${object} ${annex} do not end within ${LARGEST_OBJECT} bytes`);
    if (!more) return Buffer.from(data, 'latin1');
  }
}

/** An answer that neither goes on with an object nor ends it. */
export function inTheMiddle(object: string, answer: string): RsptraceError {
  return protocolError(`it answers "${answer.slice(0, 40)}" in the middle of its ${object}`);
}
