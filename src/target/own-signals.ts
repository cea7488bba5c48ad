import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { isProcess, programSignal, registerOf, type Session, type SignalStop, setRegister } from '../rsp/index.js';

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
