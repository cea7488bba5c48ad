import type { Session } from '../rsp/index.js';
import { accessTo, type Region } from '../scratch/index.js';
import type { Write } from './ring.js';

/**
 * After a reset: clears code of ours that is still behind the program's text, so that the slack there is found empty
 * again.
 */
export async function clearSlack(session: Session, slack: Region, code: readonly Write[]): Promise<void> {
  const access = await accessTo(session, slack);
  for (const { address, bytes } of code) {
    const at = Number(address - slack.address);
    if (at < 0 || at + bytes.length > slack.size) continue;
    const now = await access.read(at, bytes.length);
    if (now && Buffer.compare(now, bytes) === 0) await access.write(at, new Uint8Array(bytes.length));
  }
}
