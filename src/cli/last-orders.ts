import { type Machine, onSignals, type Qemu, repeatMs } from '../api/index.js';
import { note } from './failure.js';
import type { Recorded } from './recording/session.js';

/** How long a QEMU that was asked to end may take, in milliseconds. */
const endMs = 3000;
/** How long a guest that has panicked may take to say so and to end by itself. */
const panicMs = 5000;
/** How long a QEMU may take that ends by itself after its guest. */
const ownEndMs = 30_000;

/** What becomes of QEMU when the recording is over: it runs on, or it is ended. */
export class LastOrders {
  /** It did not end by itself. */
  endedByUs = false;
  readonly #qemu: Qemu;
  readonly #session: Machine['session'];
  readonly #mayRunOn: (end: Recorded['end']) => boolean;

  constructor({ qemu, session }: Machine, mayRunOn: (end: Recorded['end']) => boolean) {
    this.#qemu = qemu;
    this.#session = session;
    this.#mayRunOn = mayRunOn;
  }

  /** Nothing of ours is in the guest any more. It must not run on while its records are digested. */
  left(end: Recorded['end']): void {
    if (!this.#qemu.running || end === 'guest-ended' || end === 'panicked') return;
    // It may have closed its stub because it ends: that is seen when the recording is over.
    if (end === 'failed' && this.#session.state.kind === 'gone') return;
    if (this.#mayRunOn(end)) note('recording ended, the guest runs on; Ctrl-C ends QEMU');
    else this.#kill('SIGTERM');
  }

  /** Resolves when QEMU has ended. */
  async finish({ end, error }: Recorded): Promise<void> {
    const qemu = this.#qemu;
    if (this.#mayRunOn(end)) {
      using _handled = endedBySignals((signal) => this.#kill(signal));
      await qemu.ended;
      return;
    }
    if (end === 'guest-ended') return this.#awaitEnd();
    if (end === 'panicked' || isCut(error)) await endsWithin(qemu, panicMs);
    this.#kill('SIGTERM');
    const killer = setTimeout(() => this.#kill('SIGKILL'), endMs);
    await qemu.ended;
    clearTimeout(killer);
  }

  /** It ends by itself, and may have its disks to write. Its status counts, so SIGKILL is no end of ours either. */
  async #awaitEnd(): Promise<void> {
    const qemu = this.#qemu;
    await endsWithin(qemu, ownEndMs);
    if (qemu.running) {
      note(`QEMU has not ended within ${ownEndMs / 1000} s after its guest: it is killed`);
      qemu.kill('SIGKILL');
    }
    await qemu.ended;
  }

  #kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (!this.#qemu.running) return;
    this.endedByUs = true;
    this.#qemu.kill(signal);
  }
}

/** What runs on until a signal comes is asked to end by the first. The next kills it, because it may not heed that. */
export function endedBySignals(kill: (signal: 'SIGTERM' | 'SIGKILL') => void): Disposable {
  let asked: number | undefined;
  return onSignals(() => {
    const now = performance.now();
    if (asked === undefined) kill('SIGTERM');
    else if (now - asked > repeatMs) kill('SIGKILL');
    asked ??= now;
  }, ['SIGINT', 'SIGTERM']);
}

async function endsWithin(qemu: Qemu, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([qemu.ended, late]);
  clearTimeout(timer);
}

/** QEMU has closed its stub, as it does when it ends. */
export function isCut(error: Recorded['error']): boolean {
  return error?.code === 'RSP_CLOSED';
}
