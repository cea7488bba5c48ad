import { type Addr, addOffset, addr } from '../base/addr.js';
import type { MemoryReader } from '../base/memory-reader.js';
import type { Batch } from '../rsp/index.js';

/** What the ELF knows about a program's code. */
export interface KnownCode {
  /** The program's code at an address; undefined if the ELF has none. */
  readonly code: (address: Addr, length: number) => Uint8Array | undefined;
  /**
   * The code changes as the program runs (see `changesItsCode`). So it is read at each stop, otherwise only at the
   * first stop of each place.
   */
  readonly codeChanges?: boolean;
}

/** The target's code compared with the ELF's: the same; nothing (unreadable, or all zero); or something else. */
export type CodeState = 'same' | 'absent' | 'different';

const compared = 16;
/** Where tracers patch a function. */
const patched = 8;

/**
 * Requests the target's code at an address. The returned function compares it, once the batch is sent. Undefined if
 * the ELF has no code there.
 */
export function compareCode(
  batch: Pick<Batch, 'readMemory'>,
  { code, codeChanges = false }: KnownCode,
  entry: Addr,
): (() => CodeState) | undefined {
  const behind = addOffset(entry, patched);
  const address = codeChanges && code(behind, 1) ? behind : entry;
  const expected = bytesKnown(code, address, compared);
  if (!expected) return undefined;
  const reply = batch.readMemory(address, expected.length);
  return () => {
    const actual = reply.value;
    if (!actual || actual.every((byte) => byte === 0)) return 'absent';
    return actual.every((byte, i) => byte === expected[i]) ? 'same' : 'different';
  };
}

/** This many bytes of the program's code; fewer at the very end of its segment. */
export function bytesKnown(code: KnownCode['code'], address: Addr, most: number): Uint8Array | undefined {
  for (let length = most; length > 0; length--) {
    const bytes = code(address, length);
    if (bytes) return bytes;
  }
  return undefined;
}

/**
 * The share of the known bytes that the target has too; undefined if none are known. Padding (bytes like the one
 * before) is left out.
 */
function samePart(known: Uint8Array, actual: Uint8Array): number | undefined {
  let [all, same] = [0, 0];
  for (let i = 0; i < known.length; i++) {
    if (known[i] === (known[i - 1] ?? 0)) continue;
    all++;
    if (known[i] === actual[i]) same++;
  }
  return all === 0 ? undefined : same / all;
}

/** Bytes of a page, the unit in which programs are mapped. */
export const pageBytes = 4096;
/** A page belongs to the program if this share of it agrees: functions may be patched. */
const ownPart = 0.5;

/**
 * Whether the page of an address belongs to the program; undefined if it cannot be read, or if the ELF has nothing in
 * it.
 */
export async function isOwnPage(
  memory: MemoryReader,
  code: KnownCode['code'],
  address: Addr,
): Promise<boolean | undefined> {
  const start = addr(address & -BigInt(pageBytes));
  const step = 64;
  const known = new Uint8Array(pageBytes);
  for (let at = 0; at < pageBytes; at += step) {
    const bytes = bytesKnown(code, addOffset(start, at), step);
    if (bytes) known.set(bytes, at);
  }
  const actual = await memory.read(start, pageBytes);
  const part = actual && samePart(known, actual);
  return part === undefined ? undefined : part >= ownPart;
}
