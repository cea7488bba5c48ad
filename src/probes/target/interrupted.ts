import type { Architecture } from '../../arch/index.js';
import { type Addr, addr } from '../../base/addr.js';
import type { Session } from '../../rsp/index.js';
import type { Piece } from './ring.js';

/** Bytes of a stack that are looked at: an interrupt's frame lies near the top of it. */
const looked = 4096;
const PAGE = 4096n;

/**
 * Places (by their first address) in whose middle some code that is interrupted now would go on: the return address of a trap in a
 * register, or any word on a hart's stack that looks like one. A word that only looks so costs a later try. What other tasks have saved
 * elsewhere is not seen.
 */
export async function interruptedInside(
  session: Session,
  arch: Architecture,
  places: readonly Piece[],
): Promise<ReadonlySet<bigint>> {
  const sorted = [...places].sort((a, b) => (a.address < b.address ? -1 : 1));
  const found = new Set<bigint>();
  const look = (word: bigint): void => {
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] as Piece).address < word) low = middle + 1;
      else high = middle;
    }
    const place = sorted[low - 1];
    if (place && word < place.address + BigInt(place.length)) found.add(place.address);
  };
  for (const { id } of await session.harts()) {
    const batch = session.batch(id);
    const stackPointer = batch.readRegister(arch.sp);
    const traps = arch.trapRegisters.flatMap((name) =>
      session.target.register(name) === undefined ? [] : [batch.readRegister(name)],
    );
    await batch.send();
    for (const { value } of traps) if (value !== undefined) look(value);
    const words =
      stackPointer.value === undefined ? undefined : await stackWords(session, id, addr(stackPointer.value));
    for (const word of words ?? []) look(word);
  }
  return found;
}

async function stackWords(session: Session, hart: string, from: Addr): Promise<BigUint64Array | undefined> {
  const memory = session.memory(hart);
  const start = addr(from & ~7n);
  const toPageEnd = Number(PAGE - (start % PAGE));
  const bytes = (await memory.read(start, looked)) ?? (await memory.read(start, toPageEnd));
  return bytes && new BigUint64Array(Uint8Array.from(bytes).buffer);
}
