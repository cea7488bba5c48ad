import type { Session } from '../rsp/index.js';
import { plural } from '../text/index.js';

/** How many harts a machine has that its stub does not list, where the stub can be asked. `listed`: those that it does. */
export async function unseenHarts(session: Session, listed: number): Promise<number> {
  const all = (await (await session.stub()).processors()) ?? listed;
  return Math.max(0, all - listed);
}

export function unseenText(unseen: number, listed: number): string {
  const [are, them] = unseen === 1 ? ['is', 'it'] : ['are', 'them'];
  return `QEMU lists ${plural(listed, 'hart')} of ${listed + unseen} to its debugger: ${unseen} ${are} not traced, and code on ${them} runs past all breakpoints; a machine with its harts in one cluster shows all (-M virt)`;
}
