import { type Addr, addOffset } from '../base/addr.js';
import type { Batch } from '../rsp/index.js';

/** What the ELF knows of a program's code. */
export interface KnownCode {
  /** The program's code at an address; undefined where the ELF has none. */
  readonly code: (address: Addr, length: number) => Uint8Array | undefined;
  /** The code changes as the program runs (see `changesItsCode`): at points it is read at each stop, else at the first one of each place. */
  readonly codeChanges?: boolean;
}

/** What stands in the target against the ELF: the same; nothing (unreadable, or all zero); something else. */
export type CodeState = 'same' | 'absent' | 'different';

const compared = 16;
/** Where tracers patch a function. */
const patched = 8;

/** Asks for the target's code at an address; what it gives compares, once the batch is sent. Undefined where the ELF has no code there. */
export function compareCode(
  batch: Pick<Batch, 'readMemory'>,
  { code, codeChanges = false }: KnownCode,
  entry: Addr,
): (() => CodeState) | undefined {
  const behind = addOffset(entry, patched);
  const address = codeChanges && code(behind, 1) ? behind : entry;
  // A function at the very end of its segment has fewer bytes.
  for (let length = compared; length > 0; length--) {
    const expected = code(address, length);
    if (!expected) continue;
    const reply = batch.readMemory(address, length);
    return () => {
      const actual = reply.value;
      if (!actual || actual.every((byte) => byte === 0)) return 'absent';
      return actual.every((byte, i) => byte === expected[i]) ? 'same' : 'different';
    };
  }
  return undefined;
}
