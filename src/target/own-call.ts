// A process that has stopped inside of a system call of its own.
import type { Architecture } from '../arch/index.js';
import { addr } from '../base/addr.js';
import { type Breakpoint, registersOf, type Session, type SignalStop, type StopReason } from '../rsp/index.js';
import { runFor } from './let-run.js';

/** At these stops the call has not returned: the kernel gives its result when the thread goes on. */
const inCall: ReadonlySet<StopReason> = new Set([
  'fork',
  'vfork',
  'vforkdone',
  'clone',
  'exec',
  'syscall_entry',
] as const);
/** More than one call has. */
const mostStops = 8;
/** How long a call may last that blocks, in milliseconds; it is interrupted then. */
const longestMs = 20;

/**
 * Lets the stopped thread return from a system call of its own, in which it has stopped: before that no other call can
 * be made in it. The child of a fork is let go.
 * @returns whether it was in one; its signal or its end may have come meanwhile
 */
export async function finishOwnCall(session: Session): Promise<boolean> {
  for (let stops = 0; stops < mostStops; stops++) {
    const { state } = session;
    const stop = state.kind === 'idle' && state.stop.kind === 'signal' ? state.stop : undefined;
    if (stop?.hart === undefined || stop.reason === undefined || !inCall.has(stop.reason)) return stops > 0;
    await goOn(session, stop, stop.hart);
  }
  return true;
}

async function goOn(session: Session, stop: SignalStop, hart: string): Promise<void> {
  const step = { kind: 'step', hart } as const;
  const lifted: readonly Breakpoint[] = await session.children.letGoAt(stop);
  if (stop.reason !== 'vfork') {
    await runFor(session, longestMs, step);
    return;
  }
  // It answers no interrupt until the child has a program of its own.
  const done = await session.resume(step);
  if (done.kind !== 'signal' || done.reason !== 'vforkdone') return;
  const batch = session.batch();
  for (const breakpoint of lifted) batch.insertBreakpoint(breakpoint);
  await batch.send();
}

const CLONE_VM = 0x100n;

/** Whether a fork that stops this thread is a clone(2), or clone3, whose child goes on in the same memory. */
export async function sharesMemory(session: Session, arch: Architecture, hart?: string): Promise<boolean> {
  const { atCall, callName } = arch.linux ?? {};
  const registers = await registersOf(session, hart);
  const call = atCall && callName?.(Number(registers.register(atCall.number) ?? -1n));
  const first = registers.register(atCall?.arguments[0] ?? '') ?? 0n;
  if (call !== 'clone3') return call === 'clone' && (first & CLONE_VM) !== 0n;
  const flags = await session.memory(hart).read(addr(first), 8);
  return flags !== undefined && (Buffer.from(flags).readBigUInt64LE() & CLONE_VM) !== 0n;
}
