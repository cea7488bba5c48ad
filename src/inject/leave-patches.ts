import type { Architecture } from '../arch/index.js';
import { type Addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { ANY_HART, programSignal, registerOf, type Session, setRegister } from '../rsp/index.js';
import { finishOwnCall, runFor } from '../target/index.js';
import { type ChangedCode, interruptedInside, pieceBefore } from './interrupted.js';
import { inOrder, type Piece } from './ring.js';

/** More steps than a patch has instructions, including the interrupts that come between. */
const mostSteps = 64;

/**
 * Steps every hart out of these bytes. From their first instruction, and from `places`, it runs the new code: there it
 * may stay.
 *
 * @throws RsptraceError `PATCH_REFUSED` for a hart that does not leave
 */
export async function leavePatches(
  session: Session,
  arch: Architecture,
  patches: readonly Piece[],
  places: ReadonlyMap<bigint, Addr> = new Map(),
): Promise<void> {
  const sorted = inOrder(patches);
  const inside = (pc: bigint): boolean => {
    const piece = pieceBefore(sorted, pc);
    return piece !== undefined && pc < piece.address + BigInt(piece.length) && !places.has(pc);
  };
  const at = await stepOut(session, arch, inside, mostSteps);
  if (at === undefined) return;
  throw new RsptraceError('PATCH_REFUSED', `a hart does not leave ${hex(at)}, where code is to be changed`, {
    hint: '--engine stop patches nothing',
  });
}

/**
 * Steps every hart as long as its program counter is `inside`. The target may have ended meanwhile.
 *
 * @param most steps a hart
 * @returns where a hart stands that did not come out
 */
export async function stepOut(
  session: Session,
  arch: Architecture,
  inside: (pc: bigint) => boolean,
  most: number,
): Promise<bigint | undefined> {
  for (const { id } of await session.harts()) {
    for (let steps = 0; ; steps++) {
      const pc = await registerOf(session, arch.pc, id);
      if (pc === undefined || !inside(pc)) break;
      if (steps === most) return pc;
      const hasEntered = await giveSignal(session);
      if (!hasEntered && session.state.kind === 'idle') await session.resume({ kind: 'step', hart: id });
      // A signal may come instead of a step.
      for (let signals = 0; signals < most && (await giveSignal(session)); signals++);
      if (session.state.kind !== 'idle') return undefined;
    }
  }
  return undefined;
}

/** Gives the program the signal of the present stop, which any other step would drop; false if it has none. */
async function giveSignal(session: Session): Promise<boolean> {
  const { state } = session;
  if (state.kind !== 'idle' || state.stop.kind !== 'signal') return false;
  const signal = programSignal(state.stop);
  if (signal === undefined) return false;
  // It enters its handler.
  await session.resume({ kind: 'step', hart: state.stop.hart ?? ANY_HART, signal });
  return true;
}

/** Harts at these places go on where each one leads. */
export async function redirect(session: Session, arch: Architecture, places: ReadonlyMap<bigint, Addr>): Promise<void> {
  if (places.size === 0) return;
  for (const { id } of await session.harts()) {
    const pc = await registerOf(session, arch.pc, id);
    const to = pc === undefined ? undefined : places.get(pc);
    if (to !== undefined) await setRegister(session, arch.pc, to, id);
  }
}

/** How many short runs the target gets before its patches are removed. */
const mostTries = 20;

/**
 * Lets the target run for short times. Ends when no hart is in these bytes or would resume there.
 * @returns where this failed (first addresses); the target may have ended meanwhile
 */
export async function runOutOfPatches(
  session: Session,
  arch: Architecture,
  patches: readonly ChangedCode[],
  chained = false,
): Promise<ReadonlySet<bigint>> {
  for (let tries = 0; ; tries++) {
    await leavePatches(session, arch, patches);
    const inside = await interruptedInside(session, arch, patches, { chained });
    if (inside.size === 0 || tries === mostTries) return inside;
    await runForMoment(session, 1);
    if (session.state.kind !== 'idle') return inside;
  }
}

/** Lets the target run for this time in milliseconds, or to its next stop; it may have ended meanwhile. */
export async function runForMoment(session: Session, ms: number): Promise<void> {
  const until = performance.now() + ms;
  await finishOwnCall(session);
  let runs = true;
  for (let tries = 0; tries < mostTries; tries++) {
    const { state } = session;
    if (state.kind !== 'idle' || state.stop.kind !== 'signal') return;
    const signal = programSignal(state.stop);
    if (runs) await runFor(session, Math.max(0, until - performance.now()), { kind: 'continue', signal });
    else if (!(await giveSignal(session))) return;
    // A process that has stopped for a fork has not run for long.
    runs = (await finishOwnCall(session)) && performance.now() < until;
  }
}
