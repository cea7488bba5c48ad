import type { ProcessCode } from '../../arch/index.js';
import { addr } from '../../base/addr.js';
import type { Session } from '../../rsp/index.js';
import type { Placement } from './sites.js';

/**
 * Takes out of a process's child what it has inherited: its functions begin as they were, and its open calls return without a word. It has
 * the ring in common with its parent, so nothing of it may write there. Both stand. What it cannot write is left: a child that is gone.
 */
export async function cleanChild(
  session: Session,
  child: string,
  { patches, hooks }: Placement,
  code: ProcessCode,
): Promise<boolean> {
  const batch = session.batch(child);
  const writes = patches.map(({ address, original }) => batch.writeMemory(address, original));
  for (const [exit, { offset }] of hooks) writes.push(batch.writeMemory(addr(exit), code.bareExit(offset)));
  await batch.send();
  return writes.every(({ value }) => value);
}
