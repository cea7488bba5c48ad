import type { ProbeCode } from '../arch/index.js';
import { addr } from '../base/addr.js';
import type { Session } from '../rsp/index.js';
import type { Placement } from './placement.js';

/**
 * Removes from a forked child what it has inherited. Its functions get their first bytes back. Its open calls return
 * without a record, because the ring belongs to its parent too. Both processes are stopped. What cannot be written is
 * left as it is, because then the child is gone.
 */
export async function cleanChild(
  session: Session,
  child: string,
  { patches, hooks }: Placement,
  code: ProbeCode,
): Promise<boolean> {
  const batch = session.batch(child);
  const writes = patches.map(({ address, original }) => batch.writeMemory(address, original));
  for (const [exit, { offset, size }] of hooks) writes.push(batch.writeMemory(addr(exit), code.bareExit(offset, size)));
  await batch.send();
  return writes.every(({ value }) => value);
}
