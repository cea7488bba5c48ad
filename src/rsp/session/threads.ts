/*
 * GDB manual, "General Query Packets" qfThreadInfo, and "Thread List Format" (qXfer:threads). Refused: more than
 * 4096 harts, -1 for all of them, lists that end otherwise than by `l`.
 */

import { protocolError } from '../wire/framing.js';
import type { Ask } from './handshake.js';
import { packets } from './packets.js';
import { isThreadId } from './stop-reply.js';
import { inTheMiddle, readObject } from './transfer.js';
import { readXml } from './xml.js';

const MOST_HARTS = 4096;

/** By the thread ids of a stub, in its spelling, what its list calls them; empty if it has no threads. */
export async function readThreads(
  ask: Ask,
  asObject: boolean,
  packetSize: number,
): Promise<Map<string, string | undefined>> {
  const harts = new Map<string, string | undefined>();
  const add = (id: string, name?: string): void => {
    if (!isThreadId(id) || id.includes('-')) throw protocolError(`"${id.slice(0, 40)}" is no thread id`);
    harts.set(id, name);
    if (harts.size > MOST_HARTS) throw protocolError(`it has more than ${MOST_HARTS} threads`);
  };
  const list = asObject ? await readObject(ask, 'threads', '', packetSize) : undefined;
  if (list !== undefined) {
    readXml(list, 'list of threads', {
      open: ({ name, attributes }) => {
        if (name === 'thread') add(attributes.get('id') ?? '', attributes.get('name'));
      },
    });
    return harts;
  }
  let answer = await ask(packets.firstThreads);
  while (answer.startsWith('m')) {
    const before = harts.size;
    for (const id of answer.slice(1).split(',')) add(id);
    if (harts.size === before) throw protocolError('it lists the same thread again and again');
    answer = await ask(packets.moreThreads);
    if (!/^[ml]/.test(answer)) throw inTheMiddle('threads', answer);
  }
  return harts;
}
