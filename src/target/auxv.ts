/*
 * The auxiliary vector that Linux gives a program at its start (System V ABI AMD64, "Auxiliary Vector";
 * linux/auxvec.h):
 *
 *   a_type (8) | a_val (8)    again and again, up to a_type 0
 */

import { type Addr, addOffset, addr } from '../base/addr.js';
import { ByteReader } from '../base/byte-reader.js';
import { textOf } from '../base/proc.js';
import { registerOf, type Session } from '../rsp/index.js';

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

/** Where the program of a process will begin that has not run an instruction yet; undefined for one that has. */
export async function entryToCome(session: Session, pc: string): Promise<Addr | undefined> {
  const auxv = await readAuxv(session);
  const [entry, loader] = [auxvAddress(auxv, AT.ENTRY), auxvAddress(auxv, AT.BASE)];
  const header = loader === undefined ? undefined : await session.memory().read(addOffset(loader, entryInHeader), 8);
  if (loader !== undefined && !header) return undefined;
  const start =
    loader === undefined ? entry : addOffset(loader, Number(new ByteReader(header as Uint8Array, 'e_entry').u64()));
  return start !== undefined && (await registerOf(session, pc)) === start ? entry : undefined;
}

/** `e_entry` in an ELF header (gABI, chapter 4). */
const entryInHeader = 24;

/** That of a process of this machine; empty if it may not be looked into. */
export function auxvOf(pid: number): ReadonlyMap<number, bigint> {
  return parseAuxv(Buffer.from(textOf(`/proc/${pid}/auxv`), 'latin1'));
}
