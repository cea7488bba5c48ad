/* proc(5), /proc/PID/maps: `start-end rwxp offset major:minor inode   path`, numbers in hex but the inode. */

import { type Addr, addr } from '../base/addr.js';
import { textOf } from '../base/proc.js';
import { pidOf, type Session } from '../rsp/index.js';

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

/** Lines of another form are skipped. */
export function parseMaps(text: string): Mapping[] {
  const found: Mapping[] = [];
  for (const each of text.split('\n')) {
    const [, start, end, permissions = '', at = '', inode, path = ''] = line.exec(each) ?? [];
    if (start === undefined || end === undefined) continue;
    const [from, to, offset] = [BigInt(`0x${start}`), BigInt(`0x${end}`), Number.parseInt(at, 16)];
    found.push({ start: addr(from), end: addr(to), permissions, offset, inode: Number(inode), path });
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
