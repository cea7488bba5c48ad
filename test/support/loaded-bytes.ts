// The bytes of a target, against its ELF's.
import type { Test } from 'tap';
import { type Addr, addOffset, hex } from '../../src/base/addr.js';
import type { ElfFile } from '../../src/elf/index.js';
import type { Session } from '../../src/rsp/index.js';

/** gABI, chapter 5. */
const PT_LOAD = 1;
const PF_W = 2;
const PAGE = 4096;

/** A page at a time. */
export async function read(session: Session, from: Addr, size: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < size; at += PAGE) {
    const bytes = await session.memory().read(addOffset(from, at), Math.min(PAGE, size - at));
    if (bytes === undefined) throw new Error(`no memory at ${hex(addOffset(from, at))}`);
    pieces.push(bytes);
  }
  return Buffer.concat(pieces);
}

/** What the program must not write is the ELF's. */
export async function checkLoaded(t: Test, session: Session, elf: ElfFile): Promise<void> {
  let compared = 0;
  for (const { type, flags, address, fileSize } of elf.segments) {
    if (type !== PT_LOAD || (flags & PF_W) !== 0 || fileSize === 0) continue;
    const expected = elf.bytesAt(address, fileSize);
    const found = await read(session, address, fileSize);
    t.ok(expected && found.equals(expected), `${fileSize} bytes at ${hex(address)} are the ELF's`);
    compared += fileSize;
  }
  t.ok(compared > 10_000, `${compared} bytes compared`);
}
