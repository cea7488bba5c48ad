import type { Batch, Session, SignalStop } from '../rsp/index.js';
import type { Drain } from './live-drain.js';
import type { TargetEngine } from './target-engine.js';

/** How long records are digested between two polls of the stub's answer, in milliseconds. */
const digestMs = 2;
/**
 * Times in milliseconds. A ring that takes longer than some `longest` to fill is read when it is full. `shortest` is
 * what a target needs to make any progress.
 */
const [shortest, longest] = [0.25, 16];
/** If the ring is less full than `few` at interrupts, they are too frequent; if it is fuller than `many`, too rare. */
const [few, many] = [0.25, 0.5];
/**
 * How often a writer polls a full ring before its breakpoint stops the target. Tens of milliseconds on an emulator:
 * an interrupt should come first.
 */
const looksWhileInterrupted = 2 ** 17;
const SIGINT = 2;

/**
 * Reads the ring at stops, and digests the records while the target runs again.
 *
 * At a stop by a breakpoint QEMU throws all its translated code away (`tb_flush` in gdbstub.c's gdb_vm_state_change),
 * which costs the target milliseconds. A stop by an interrupt does not. So after a full ring has stopped the target
 * once, it is interrupted as often as the ring fills.
 */
export class StoppedDrain implements Drain {
  readonly #target: TargetEngine;
  readonly #session: Session;
  readonly #interrupts: boolean;
  readonly #onError: (thrown: unknown) => void;
  /** Milliseconds until the next interrupt; undefined: none. */
  #delay: number | undefined;
  /** The time of the next interrupt, as `performance.now` counts. */
  #due = Number.POSITIVE_INFINITY;
  #interrupted = false;
  #immediate: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** Errors in digesting are given to `onError`. */
  constructor(target: TargetEngine, session: Session, interrupts: boolean, onError: (thrown: unknown) => void) {
    this.#target = target;
    this.#session = session;
    this.#interrupts = interrupts;
    this.#onError = onError;
  }

  runs(): () => void {
    this.#due = performance.now() + (this.#delay ?? Number.POSITIVE_INFINITY);
    this.#immediate = setImmediate(() => this.#work());
    return () => this.stop();
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
  }

  async handles({ signal, reason }: SignalStop, resume: Batch): Promise<boolean> {
    if (!this.#interrupted || signal !== SIGINT || reason !== undefined) return false;
    this.#interrupted = false;
    await this.#drain(false, resume);
    return true;
  }

  stopped(emits: boolean): Promise<void> {
    return this.#drain(emits);
  }

  async #drain(emits: boolean, resume?: Batch): Promise<void> {
    await this.#target.drainStopped({ all: emits, resume });
    if (!this.#interrupts) return;
    const before = this.#delay;
    this.#delay = delayAfter(before, this.#target.filled);
    if ((before === undefined) !== (this.#delay === undefined))
      this.#target.looks = this.#delay === undefined ? 1 : looksWhileInterrupted;
  }

  #work(): void {
    let more = false;
    try {
      more = this.#target.drained.digest(digestMs);
    } catch (thrown) {
      this.#onError(thrown);
      return;
    }
    const left = this.#due - performance.now();
    if (left <= 0) this.#interrupt();
    // No timer: it would fire a millisecond later at the least.
    else if (more || left < 1) this.#immediate = setImmediate(() => this.#work());
    else if (this.#delay !== undefined) this.#timer = setTimeout(() => this.#work(), left);
  }

  #interrupt(): void {
    if (this.#session.state.kind !== 'running') return;
    this.#interrupted = true;
    // An error here also ends the run, which reports it.
    this.#session.interrupt().catch(() => {});
  }
}

/** The next delay, after this delay and this claimed share of the ring. */
function delayAfter(delay: number | undefined, filled: number): number | undefined {
  if (filled >= many) return delay === undefined ? 1 : Math.max(shortest, delay / 2);
  if (filled >= few || delay === undefined) return delay;
  return 2 * delay > longest ? undefined : 2 * delay;
}
