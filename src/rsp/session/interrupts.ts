import { RsptraceError } from '../../base/errors.js';
import type { StopReply } from './stop-reply.js';

const SIGINT = 2;
const SIGTRAP = 5;

/** Stops a process of this machine, in place of the interrupt packet. */
export interface StopSignal {
  /** Returns whether it was sent. */
  send(): boolean;
  /** The server is gone, and the process would stay stopped. */
  takeBack(): void;
}

/** The interrupts that were sent: how long each may take, and whether the stop that it brings is still to come. */
export class Interrupts {
  /**
   * A SIGSTOP. gdbserver makes the packet a SIGINT to the process group. One that a signalfd or sigwait takes ends the
   * program. Other processes of the group, which are not traced, get it too.
   */
  bySignal: StopSignal | undefined;
  /** The last interrupt was such a signal. */
  #wasSignal = false;
  /** Interrupts by which no stop has come yet: the stub may still have a signal for the target. */
  #owed = 0;
  /** When the target stopped, an interrupt of ours was owed; undefined while it has not run. */
  broughtStop: boolean | undefined;
  /** Interrupts were sent. Each may be a signal that is still pending, even after a stop by another one. */
  wereSent = false;
  /** The number of SIGSTOP; undefined for a machine, which has none. */
  #sigstop: number | undefined;
  readonly #timeoutMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * The handshake has learnt what the target is, and its number of SIGSTOP. `attachedAt`: where the server has attached
   * to a process. It does so by a SIGSTOP. Where another signal came before, that one is still to come: given to the
   * program it would stop it for good.
   */
  begin(isProcess: boolean, sigstop: number, attachedAt?: StopReply): void {
    this.#sigstop = isProcess ? sigstop : undefined;
    const signal = attachedAt?.kind === 'signal' ? attachedAt.signal : 0;
    this.#wasSignal = isProcess && ![0, SIGINT, SIGTRAP, sigstop].includes(signal);
    if (this.#wasSignal) this.#owed++;
  }

  /** An interrupt was sent, and no stop by it has come yet. */
  get isOwed(): boolean {
    return this.#owed > 0;
  }

  /** Another client, which is gone, may have sent any number of interrupts. */
  takeOver(): void {
    this.#owed = Number.POSITIVE_INFINITY;
    this.wereSent = true;
  }

  /** The target has stopped. Returns the stop with signal 2 where an interrupt made it, by whichever signal. */
  cameBy(stop: StopReply): StopReply {
    this.broughtStop = false;
    if (!this.isOwed) return stop;
    const signal = stop.kind === 'signal' ? stop.signal : undefined;
    // A SIGINT where a SIGSTOP was sent is the program's own.
    this.broughtStop = signal !== SIGINT || !this.#wasSignal;
    const isStopped = signal !== undefined && signal === this.#sigstop;
    if (isStopped || (signal === SIGINT && this.broughtStop)) this.#owed--;
    return isStopped && stop.kind === 'signal' ? { ...stop, signal: SIGINT, reason: undefined } : stop;
  }

  /** Sends an interrupt, `packet` if not by a signal. `lost` is called if the run goes on for the whole timeout. */
  send(packet: () => void, lost: () => void): void {
    this.#wasSignal = this.bySignal?.send() === true;
    if (!this.#wasSignal) packet();
    this.wereSent = true;
    this.#owed++;
    this.#timer = setTimeout(() => {
      // Data that came while this thread was busy is read first.
      setImmediate(lost);
    }, this.#timeoutMs);
  }

  /** The server is gone. `stands`: the process was not let go on. */
  lost(stands: boolean): void {
    if (this.#wasSignal && (stands || this.isOwed)) this.bySignal?.takeBack();
  }

  /** The run has ended. */
  runEnded(): void {
    clearTimeout(this.#timer);
  }

  /** The error for a target that does not stop. */
  timeout(): RsptraceError {
    const hint =
      this.#sigstop !== undefined
        ? 'Send a SIGINT to the traced process: QEMU in user mode does not listen while it runs, and gdbserver on another machine cannot stop one that leads no process group'
        : 'The stub may be stuck; its program is left as it is';
    const what = `The target has not stopped within ${this.#timeoutMs} ms of the interrupt`;
    return new RsptraceError('RSP_TIMEOUT', what, { hint });
  }
}
