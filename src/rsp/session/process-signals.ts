import { setTimeout as sleep } from 'node:timers/promises';
import { entriesOf, isRunnable } from '../../base/proc.js';
import type { WireRecorder } from '../wire/wire-log.js';
import type { Ask } from './handshake.js';
import { packets } from './packets.js';
import type { RunControl } from './run-control.js';
import type { Session } from './session.js';
import { pidOf, programSignal } from './stop-reply.js';
import {
  blocksInterrupt,
  interruptIsPending,
  isTracedHere,
  leadsGroup,
  processOf,
  readHere,
  stopIsPending,
} from './stop-signals.js';

/** How many stops may come before a pending SIGINT: breakpoints that other threads had hit, signals. */
const STOPS_BEFORE_INTERRUPT = 1000;
const SIGINT = 2;
/** After so long a pending signal that has not stopped the target is gone. */
const GONE_MS = 300;
/** How long threads run to take their signals. */
const MOMENT_MS = 2;

/** The signals by which servers stop a Linux process: whether they reach it, and what is left of them at the end. */
export class ProcessSignals {
  readonly #session: Session;
  readonly #control: RunControl;
  readonly #ask: Ask;
  #localProcess: number | undefined;

  constructor(session: Session, control: RunControl, ask: Ask) {
    this.#session = session;
    this.#control = control;
    this.#ask = ask;
  }

  /** The process, if a gdbserver of this machine traces it. */
  get localProcess(): number | undefined {
    return this.#localProcess;
  }

  /** See {@link Session.whyUninterruptible}. */
  async whyUninterruptible(): Promise<string | undefined> {
    const pid = this.#gdbserverPid();
    if (pid === undefined || this.#localProcess !== undefined) return undefined;
    const read = (path: string): Promise<Uint8Array | undefined> => this.#session.remoteFile(path);
    if (!(await leadsGroup(read, pid)))
      return 'gdbserver interrupts a process group, and this process does not lead one: nothing could stop it again';
    const threads = (await this.#session.harts()).map(({ id }) => Number.parseInt(/[^.]*$/.exec(id)?.[0] ?? '', 16));
    for (const thread of threads) {
      if (await blocksInterrupt(read, pid, thread))
        return 'gdbserver interrupts by a SIGINT, and a thread blocks that: a program that takes it by sigwait or signalfd would end';
    }
    return undefined;
  }

  /** See {@link Session.findLocalProcess}. */
  async findLocalProcess(wire: WireRecorder | undefined): Promise<void> {
    const pid = this.#gdbserverPid();
    if (pid === undefined || this.#localProcess !== undefined || !(await isTracedHere(pid))) return;
    this.#localProcess = pid;
    this.#control.interrupts.bySignal = {
      send() {
        if (!send(runningThread(pid) ?? pid, 'SIGSTOP') && !send(pid, 'SIGSTOP')) return false;
        wire?.bytes('stub', Uint8Array.of(packets.interrupt), 1);
        return true;
      },
      takeBack() {
        // It ends a SIGSTOP that is on its way, too (signal(7)).
        send(pid, 'SIGCONT');
      },
    };
  }

  #gdbserverPid(): number | undefined {
    const pid = Number.parseInt(pidOf(this.#control.stoppedHart) ?? '', 16);
    return Number.isNaN(pid) || !this.#session.features.supported.has('QProgramSignals') ? undefined : pid;
  }

  /**
   * A process is interrupted by a signal. If a breakpoint was hit in the same moment, that is still pending and would
   * end or stop the program after the detach. So the target runs, without breakpoints, until the signal has come. That
   * of the last stop is not the program's either, unless nobody has interrupted it.
   */
  async takeInterruptBack(): Promise<void> {
    const { state, features } = this.#session;
    const { signal: last, reason } = state.kind === 'idle' && state.stop.kind === 'signal' ? state.stop : {};
    const { wereSent, broughtStop } = this.#control.interrupts;
    let isOwn = last === SIGINT && reason === undefined && broughtStop === false;
    const isWanted = wereSent || last === features.signals.stop || isOwn;
    if (isWanted && features.supported.get('QProgramSignals') === '+') await this.#ask(packets.programSignals(isOwn));
    for (let stops = 0; stops < STOPS_BEFORE_INTERRUPT; stops++) {
      const { state } = this.#session;
      if (state.kind !== 'idle' || state.stop.kind !== 'signal' || !(await this.#isInterruptPending())) return;
      await this.#session.children.letGoAt(state.stop);
      // A signal that came instead is the program's.
      const signal = isOwn ? SIGINT : programSignal(state.stop);
      isOwn = false;
      // Nothing stops the target if the signal has gone since: gdbserver keeps a SIGSTOP of its own to itself.
      const timer = setTimeout(() => void this.#session.interrupt().catch(() => {}), GONE_MS);
      await this.#session.resume({ kind: 'continue', signal }).finally(() => clearTimeout(timer));
    }
  }

  async #isInterruptPending(): Promise<boolean> {
    const pid = Number.parseInt(pidOf(this.#control.stoppedHart) ?? '', 16);
    if (Number.isNaN(pid)) return false;
    const { interrupts } = this.#control;
    if (interrupts.isOwed) return interruptIsPending((path) => this.#session.remoteFile(path), pid);
    // An earlier interrupt than the one that has stopped it; not asked of the stub, which is rarely needed.
    return interrupts.wereSent && this.#localProcess === pid && interruptIsPending(readHere, pid);
  }

  /**
   * lldb-server stops threads by a SIGSTOP each, and takes it back only from threads that run. No breakpoint is
   * inserted any more.
   */
  async takeStopsBack(): Promise<void> {
    const session = this.#session;
    if (session.state.kind !== 'idle' || !session.features.supported.has('native-signals')) return;
    const pid = processOf(await this.#ask(packets.processInfo));
    if (pid === undefined) return;
    for (let tries = 0; tries < STOPS_BEFORE_INTERRUPT && session.state.kind === 'idle'; tries++) {
      const threads = (await session.harts()).map(({ id }) => Number.parseInt(id, 16));
      if (!(await stopIsPending((path) => session.remoteFile(path), pid, threads))) return;
      const stop = session.resume();
      await sleep(MOMENT_MS);
      await session.interrupt();
      await stop;
    }
  }
}

/** False for another user's process, which takes no signal of ours. */
function send(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** So many threads are asked whether they run. */
const MOST_ASKED = 32;

/**
 * A thread that runs. A signal to its number is the process's, but this thread takes it (complete_signal of Linux), and
 * need not wait for a processor to do so.
 */
function runningThread(pid: number): number | undefined {
  const threads = entriesOf(`/proc/${pid}/task`);
  const first = Math.floor(Math.random() * threads.length);
  const asked = [...threads.slice(first), ...threads.slice(0, first)].slice(0, MOST_ASKED);
  const found = asked.find((thread) => isRunnable(pid, thread));
  return found === undefined ? undefined : Number(found);
}
