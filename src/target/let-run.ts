import { setImmediate } from 'node:timers/promises';
import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import {
  isProcess,
  programSignal,
  type Resume,
  registerOf,
  type Session,
  type SignalStop,
  type StopReply,
  setRegister,
} from '../rsp/index.js';

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

/** @returns the stop that ends the run: it is interrupted after this time in milliseconds */
export async function runFor(session: Session, ms: number, how: Resume): Promise<StopReply> {
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

const SIGINT = 2;
const SIGTRAP = 5;

/**
 * The signal of a stop that neither a breakpoint nor a step of ours has made, if it is the program's own: it goes on
 * with it, as it would untraced. That of a trap instruction comes behind it, where gdbserver has put the pc back.
 */
export async function ownSignal(session: Session, arch: Architecture, stop: SignalStop): Promise<number | undefined> {
  const signal = programSignal(stop);
  if (signal !== undefined || !isProcess(session.features)) return signal;
  if (stop.signal === SIGINT) return stop.reason === undefined && !session.wasInterrupted ? SIGINT : undefined;
  if (stop.signal !== SIGTRAP) return undefined;
  return (await isBehindTrap(session, arch, stop)) || (await isSent(session, stop)) ? SIGTRAP : undefined;
}

/** The hart has run a trap instruction of the program. Its pc is behind that afterwards. */
async function isBehindTrap(session: Session, { pc, linux }: Architecture, stop: SignalStop): Promise<boolean> {
  const { reason, hart } = stop;
  if (!linux || (reason !== undefined && reason !== 'swbreak' && reason !== 'breakpoint')) return false;
  const value = await registerOf(session, pc, hart);
  if (value === undefined) return false;
  const here = addr(value);
  const isOurs = (at: Addr): boolean => session.breakpoints.some(({ address }) => address === at);
  if (reason !== 'swbreak') {
    const at = addOffset(here, -linux.behindTrap);
    const code = isOurs(at) ? undefined : await session.memory(hart).read(at, 4);
    return code !== undefined && linux.isTrap(code);
  }
  // gdbserver forgets hits of breakpoints that were taken out meanwhile.
  if (isOurs(here)) return false;
  return setRegister(session, pc, addOffset(here, linux.behindTrap), hart);
}

/** Somebody has sent it, or its own flag makes it: from stubs that say of every trap of theirs what it was. */
async function isSent(session: Session, { reason }: SignalStop): Promise<boolean> {
  if (reason === 'signal') return true;
  const { features } = session;
  const tells = features.swbreak && features.supported.get('exec-events') === '+';
  return reason === undefined && tells && !session.wasInterrupted && !(await session.stub()).isQemu;
}
