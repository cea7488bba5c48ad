/*
 * Where the dynamic loader comes by at each change of what is loaded (glibc's link.h, "rendezvous with debuggers";
 * musl's alike). The program's dynamic section has DT_DEBUG, which the loader makes point to
 *
 *     struct r_debug { int r_version; struct link_map *r_map; Addr r_brk; ... }
 */

import { type Addr, addOffset, addr } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { unavailable } from '../scratch/index.js';

const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_DEBUG = 21n;
const entryBytes = 16;
const mostBytes = 1 << 16;
const brkOffset = 16;

/**
 * The function that the loader calls then; undefined for a program without a loader.
 * @throws RsptraceError `SCRATCH_UNAVAILABLE` if it cannot be found
 */
export async function loaderStop(session: Session, elf: ElfFile): Promise<Addr | undefined> {
  if (!elf.segments.some(({ type }) => type === PT_INTERP)) return undefined;
  const dynamic = elf.segments.find(({ type }) => type === PT_DYNAMIC);
  const memory = session.memory();
  const bytes = dynamic && (await memory.read(dynamic.address, Math.min(dynamic.memorySize, mostBytes)));
  const view = bytes && new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; view && at + entryBytes <= view.byteLength; at += entryBytes) {
    if (view.getBigUint64(at, true) !== DT_DEBUG) continue;
    const place = await memory.read(addOffset(addr(view.getBigUint64(at + 8, true)), brkOffset), 8);
    const value = place ? new DataView(place.buffer, place.byteOffset, 8).getBigUint64(0, true) : 0n;
    if (value !== 0n) return addr(value);
  }
  throw unavailable('the dynamic loader does not say where it loads libraries, which may bring exceptions');
}
