/*
 * The auxiliary vector that Linux gives a program at its start (System V ABI AMD64, "Auxiliary Vector";
 * linux/auxvec.h):
 *
 *   a_type (8) | a_val (8)    again and again, up to a_type 0
 */

import { type Addr, addr } from '../base/addr.js';
import { ByteReader } from '../base/byte-reader.js';
import { textOf } from '../base/proc.js';
import type { Session } from '../rsp/index.js';

export const AT = { NULL: 0, PHDR: 3, PHNUM: 5, BASE: 7, ENTRY: 9, SYSINFO_EHDR: 33 } as const;

/** The entries of a vector, whose last may be missing. */
export function parseAuxv(bytes: Uint8Array): ReadonlyMap<number, bigint> {
  const found = new Map<number, bigint>();
  const reader = new ByteReader(bytes, 'the auxiliary vector');
  while (reader.remaining >= 16) {
    const type = Number(reader.u64());
    const value = reader.u64();
    if (type === AT.NULL) break;
    if (!found.has(type)) found.set(type, value);
  }
  return found;
}

/**
 * The vector of the process that a stub debugs; undefined if the stub serves none, because it debugs no Linux
 * process.
 */
export async function readAuxv(session: Session): Promise<ReadonlyMap<number, bigint> | undefined> {
  const bytes = await session.object('auxv');
  return bytes && bytes.length > 0 ? parseAuxv(bytes) : undefined;
}

export function auxvAddress(auxv: ReadonlyMap<number, bigint> | undefined, type: number): Addr | undefined {
  const value = auxv?.get(type);
  return value === undefined || value === 0n ? undefined : addr(value);
}

/** That of a process of this machine; empty if it may not be looked into. */
export function auxvOf(pid: number): ReadonlyMap<number, bigint> {
  return parseAuxv(Buffer.from(textOf(`/proc/${pid}/auxv`), 'latin1'));
}
