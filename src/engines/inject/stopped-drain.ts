import type { Batch, Session, SignalStop } from '../../rsp/index.js';
import type { Drain } from './drain.js';
import type { TargetEngine } from './target-engine.js';

/** How long records are worked on between two looks at what the stub says, in milliseconds. */
const digestMs = 2;
/** A ring that fills more slowly than in some times `longest`, in milliseconds, is read when it is full; `shortest` is what a target needs to go on at all. */
const [shortest, longest] = [0.25, 16];
/** Less than a fullness of `few` between two interrupts is too often, more than `many` too seldom. */
const [few, many] = [0.25, 0.5];
/** Looks at a full ring until its breakpoint stops the target although an interrupt should have: tens of milliseconds on an emulator. */
const looksWhileInterrupted = 2 ** 17;
const SIGINT = 2;

/**
 * Reads the ring at stops, and works on the records while the target runs again.
 *
 * At a stop by a breakpoint QEMU throws all its translated code away (`tb_flush` in gdbstub.c's gdb_vm_state_change), which costs the target
 * milliseconds; at one by an interrupt it does not. So when a full ring has stopped it once, it is interrupted as often as the ring fills.
 */
export class StoppedDrain implements Drain {
  /** An interrupt costs less there than a full ring's breakpoint does. */
  static async gains(session: Session): Promise<boolean> {
    return (await session.stub()).name === 'qemu-system';
  }

  readonly #target: TargetEngine;
  readonly #session: Session;
  readonly #interrupts: boolean;
  readonly #onError: (thrown: unknown) => void;
  /** Milliseconds until the next interrupt; undefined: none. */
  #delay: number | undefined;
  /** When that is, as `performance.now` counts. */
  #due = Number.POSITIVE_INFINITY;
  #interrupted = false;
  #immediate: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** What throws while records are worked on is given to `onError`. */
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

  stopped(tells: boolean): Promise<void> {
    return this.#drain(tells);
  }

  async #drain(tells: boolean, resume?: Batch): Promise<void> {
    await this.#target.drainStopped({ all: tells, pending: tells, later: !tells, resume });
    if (!this.#interrupts) return;
    const before = this.#delay;
    this.#delay = delayAfter(before, this.#target.filled);
    if ((before === undefined) !== (this.#delay === undefined))
      this.#target.looks = this.#delay === undefined ? 1 : looksWhileInterrupted;
  }

  #work(): void {
    let more = false;
    try {
      more = this.#target.digest(digestMs);
    } catch (thrown) {
      this.#onError(thrown);
      return;
    }
    const left = this.#due - performance.now();
    if (left <= 0) this.#interrupt();
    // A timer would come a millisecond later at the least.
    else if (more || left < 1) this.#immediate = setImmediate(() => this.#work());
    else if (this.#delay !== undefined) this.#timer = setTimeout(() => this.#work(), left);
  }

  #interrupt(): void {
    if (this.#session.state.kind !== 'running') return;
    this.#interrupted = true;
    // What breaks here breaks the run, which tells it.
    this.#session.interrupt().catch(() => {});
  }
}

/** What comes after such a delay, and such a share of the ring that was claimed meanwhile. */
function delayAfter(delay: number | undefined, filled: number): number | undefined {
  if (filled >= many) return delay === undefined ? 1 : Math.max(shortest, delay / 2);
  if (filled >= few || delay === undefined) return delay;
  return 2 * delay > longest ? undefined : 2 * delay;
}
