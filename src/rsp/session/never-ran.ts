import type { Session } from './session.js';

/** QEMU with -S whose guest was not let go yet: to detach would start it. Other stubs do not know the command. */
export async function neverRan(session: Session): Promise<boolean> {
  return /\bprelaunch\b/.test((await session.monitor('info status')) ?? '');
}
