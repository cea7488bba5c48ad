import { RsptraceError } from '../../base/errors.js';
import type { StopReply } from './stop-reply.js';

const SIGINT = 2;

/** The interrupts that were sent: how long each may take, and whether the stop that it brings is still to come. */
export class Interrupts {
  /** Stops the target if the stub cannot; called beside the interrupt packet. */
  also: (() => void) | undefined;
  /** Interrupts by which no stop has come yet: the stub may still have a SIGINT for the target. */
  #owed = 0;
  /** When the target stopped, an interrupt of ours was owed. */
  broughtStop = false;
  /** Interrupts were sent. Each may be a SIGINT that is still pending, even after a stop by another one. */
  wereSent = false;
  /** The target is a process, not a machine. */
  isProcess = false;
  readonly #timeoutMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** An interrupt was sent, and no stop by it has come yet. */
  get isOwed(): boolean {
    return this.#owed > 0;
  }

  /** The target has stopped, perhaps by a SIGINT. */
  cameBy(stop: StopReply): void {
    this.broughtStop = this.isOwed;
    if (this.isOwed && stop.kind === 'signal' && stop.signal === SIGINT) this.#owed--;
  }

  /** The packet was sent. `lost` is called if the run goes on for the whole timeout. */
  sent(lost: () => void): void {
    this.also?.();
    this.wereSent = true;
    this.#owed++;
    this.#timer = setTimeout(() => {
      // Data that came while this thread was busy is read first.
      setImmediate(lost);
    }, this.#timeoutMs);
  }

  /** The run has ended. */
  runEnded(): void {
    clearTimeout(this.#timer);
  }

  /** The error for a target that does not stop. */
  timeout(): RsptraceError {
    const hint = this.isProcess
      ? 'Send a SIGINT to the traced process: QEMU in user mode does not listen while it runs, and gdbserver on another machine cannot stop one that leads no process group'
      : 'The stub may be stuck; its program is left as it is';
    const what = `The target has not stopped within ${this.#timeoutMs} ms of the interrupt`;
    return new RsptraceError('RSP_TIMEOUT', what, { hint });
  }
}
