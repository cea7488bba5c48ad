import { setImmediate } from 'node:timers/promises';
import type { Architecture } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import type { Resume, Session, StopReply } from '../rsp/index.js';
import { ownSignal } from './own-signals.js';

/** Lets the target run on for a moment, if it has stood for so many milliseconds; it stands again then. */
export type LetRun = (stoodMs?: number) => Promise<void>;

/** A process that has stood for less runs on later, in milliseconds. */
const shortStop = 5;
/** How long it runs then, in milliseconds: requests that have waited are answered. */
const runsMs = 25;

/**
 * Lets a process run on for a moment, between two steps of its preparation. It stays as it is if it has stood for a
 * moment only, or if something in it may stop it.
 * @throws RsptraceError `ATTACH_NO_PROCESS` if the process ends, or begins another program; it is left then
 */
export async function letRun(session: Session, arch: Architecture, stoodMs = shortStop): Promise<void> {
  const { state } = session;
  if (state.kind !== 'idle' || session.standing.nowMs < stoodMs || session.breakpoints.length > 0) return;
  const until = performance.now() + runsMs;
  // It stands since the connection, an interrupt or a step of ours: none of them is the program's own stop.
  let signal: number | undefined;
  for (;;) {
    const left = until - performance.now();
    const stop = await runFor(session, Math.max(0, left), { kind: 'continue', signal });
    if (stop.kind !== 'signal' || stop.reason === 'exec') throw await ended(session, stop);
    await session.children.letGoAt(stop);
    signal = await ownSignal(session, arch, stop);
    if (performance.now() >= until && signal === undefined && stop.reason === undefined) return;
  }
}

/** @returns the stop that ends the run: after this time in milliseconds at the latest */
async function runFor(session: Session, ms: number, how: Resume): Promise<StopReply> {
  const timer = setTimeout(() => void session.interrupt().catch(() => {}), ms);
  try {
    return await session.resume(how);
  } finally {
    clearTimeout(timer);
  }
}

async function ended(session: Session, stop: StopReply): Promise<RsptraceError> {
  const what = stop.kind === 'signal' ? 'has begun another program' : 'has ended';
  await session.detach();
  return new RsptraceError('ATTACH_NO_PROCESS', `the process ${what} while it was attached to`);
}

/** Does what needs no target, while it runs on if it may. */
export async function meanwhile<T>(letRun: LetRun | undefined, work: () => T): Promise<T> {
  if (!letRun) return work();
  const stands = letRun(0);
  try {
    // The packet that lets it run is written before.
    await setImmediate();
    return work();
  } finally {
    await stands;
  }
}
