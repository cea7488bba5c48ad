import { RsptraceError } from '../../base/errors.js';
import { type Breakpoint, breakpointKey } from './batch-requests.js';
import type { StubFeatures } from './features.js';
import type { Resume } from './hart-requests.js';
import type { Session } from './session.js';
import type { StopReply } from './stop-reply.js';

/** Breakpoints that would stop a step: QEMU steps over an inserted breakpoint, but not over a watchpoint. */
export function liftedForStep(
  breakpoints: readonly Breakpoint[],
  inserted: ReadonlyMap<string, Breakpoint>,
  { qemuStepBits }: StubFeatures,
): Breakpoint[] {
  const stays = ({ type }: Breakpoint): boolean => qemuStepBits !== undefined && (type === 0 || type === 1);
  return breakpoints.filter((each) => inserted.has(breakpointKey(each)) && !stays(each));
}

/**
 * Removes breakpoints, steps, and inserts them again. Throws `RSP_BREAKPOINT_REFUSED` if the stub refuses one the
 * second time.
 */
export async function stepWithout(
  session: Session,
  lifted: readonly Breakpoint[],
  hart: string,
  step: Resume,
): Promise<StopReply> {
  if (lifted.length === 0) return session.resume(step);
  const batch = session.batch(hart);
  for (const each of lifted) batch.removeBreakpoint(each);
  const stop = await batch.resume(step);
  if (session.state.kind !== 'idle') return stop;
  const again = session.batch();
  const replies = lifted.map((each) => ({ address: each.address, reply: again.insertBreakpoint(each) }));
  await again.send();
  const refused = replies.find(({ reply }) => !reply.value);
  if (refused === undefined) return stop;
  throw new RsptraceError(
    'RSP_BREAKPOINT_REFUSED',
    `The stub does not take the breakpoint at 0x${refused.address.toString(16)} again`,
  );
}
