import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Hit } from '../calls/index.js';
import type { Watchpoint } from '../probes/index.js';
import { ANY_HART, type Breakpoint, programSignal, registerOf, type Session, type StopReply } from '../rsp/index.js';
import { codeBytes } from './breakpoints.js';
import type { Watchpoints } from './watchpoints.js';

/** How often a step that does not move the pc is retried: on x86 QEMU a pending interrupt makes a step a no-op. */
const stepTries = 16;
/** The most turns of an instruction that repeats itself (x86's `rep`): a step is one turn, and leaves the pc. */
const mostTurns = 1 << 16;

/** The result of a step. */
export interface Stepped {
  /** The last stop; the target may have ended. */
  readonly stop: StopReply;
  readonly pc: Addr | undefined;
  /** An interrupt or signal handler came first, and will return to this same instruction. */
  readonly interrupted: boolean;
  /** Watched places that the instruction accessed, with their values before. */
  readonly accessed: readonly Touched[];
}

interface Touched {
  readonly point: Watchpoint;
  readonly old: Uint8Array | undefined;
  /** The pc for the event, see `Access`. */
  readonly pc: Addr;
  readonly exact: boolean;
}

/** Runs single instructions of one hart, and makes sure that they really run. */
export class Stepper {
  readonly #session: Session;
  readonly #arch: Architecture;
  readonly #watches: Watchpoints | undefined;
  /** Steps so far. */
  steps = 0;
  /** How the target ended while it was stepped by {@link walk}. */
  ended: StopReply | undefined;
  /**
   * The hart that will stop once more without a reason. QEMU's x86 reports a watched access at the end of a step, and
   * its debug interrupt stays pending.
   */
  #owing: string | undefined;

  constructor(session: Session, arch: Architecture, watches: Watchpoints | undefined) {
    this.#session = session;
    this.#arch = arch;
    this.#watches = watches;
  }

  /** An unrequested stop came. */
  stopped(hart: string | undefined): void {
    if (this.#owing === hart) this.#owing = undefined;
  }

  /**
   * Takes a stop that is still due. After rsptrace has left, nobody would answer that stop, and the target would not
   * go on.
   */
  async settle(): Promise<void> {
    const hart = this.#owing;
    if (hart === undefined || this.#session.state.kind !== 'idle') return;
    this.#owing = undefined;
    await this.#session.resume({ kind: 'step', hart });
    this.steps++;
  }

  /**
   * Runs at most `most` instructions of one hart, one by one. `goesOn` is asked before each. If the target ends
   * meanwhile, {@link ended} says how.
   */
  async walk(
    hart: string | undefined,
    most: number,
    goesOn: (pc: bigint | undefined) => Promise<boolean>,
  ): Promise<void> {
    try {
      await this.#walk(hart, most, goesOn);
    } catch (error) {
      // A machine that was told to power off may end a moment later, while it stands.
      const { state } = this.#session;
      if (state.kind !== 'gone' || state.reason) throw error;
      this.ended = state.end ?? { kind: 'gone' };
    }
  }

  async #walk(
    hart: string | undefined,
    most: number,
    goesOn: (pc: bigint | undefined) => Promise<boolean>,
  ): Promise<void> {
    for (let step = 0; step < most; step++) {
      const pc = await registerOf(this.#session, this.#arch.pc, hart);
      if (!(await goesOn(pc))) return;
      const stop = await this.#session.resume({ kind: 'step', hart: hart ?? ANY_HART });
      this.steps++;
      if (stop.kind === 'signal') continue;
      this.ended = stop;
      return;
    }
  }

  /**
   * Runs the instruction at a hit, with these breakpoints removed. `watched` was reported as about to be accessed by
   * the instruction. Afterwards the values under the watchpoints are known.
   * @throws RsptraceError `TARGET_STUCK`
   */
  async over(
    at: Pick<Hit, 'pc' | 'stackPointer'>,
    hart: string | undefined,
    breakpoints: readonly Breakpoint[],
    watched?: Watchpoint,
  ): Promise<Stepped> {
    const touched: Touched[] = [];
    const lifted = [...breakpoints];
    const before = (point: Watchpoint): void => {
      touched.push({ point, old: point.known, pc: at.pc, exact: true });
      lifted.push(point.breakpoint);
    };
    if (watched) before(watched);
    let signal: number | undefined;
    let turns = 0;
    let last: Uint8Array | undefined;
    for (let tries = 0; tries < stepTries; tries++) {
      const stop = await this.#session.stepOver(hart ?? ANY_HART, lifted, signal);
      this.steps++;
      if (stop.kind !== 'signal') return { stop, pc: undefined, interrupted: false, accessed: [] };
      const handed = signal;
      signal = programSignal(stop);
      const earlier = this.#watches?.all.map(({ known }) => known) ?? [];
      const batch = this.#session.batch(hart);
      const registers = batch.readRegisters();
      const learn = this.#watches?.request(batch);
      await batch.send();
      learn?.();
      const pc = registers.value.register(this.#arch.pc);
      const point = this.#watches?.reported(stop);
      const isNew = point && !touched.some((each) => each.point === point);
      if (pc === undefined || pc === at.pc) {
        if (isNew) before(point);
        else this.stopped(hart);
        const { bytes } = registers.value;
        const hasTurned = last !== undefined && Buffer.compare(last, bytes) !== 0;
        if (hasTurned && ++turns < mostTurns) tries = 0;
        last = bytes;
        continue;
      }
      if (isNew) {
        touched.push({ point, old: earlier[point.index], pc: addr(pc), exact: false });
        if ((await this.#session.stub()).isQemu) this.#owing = hart;
      }
      const stackPointer = registers.value.register(this.#arch.sp) ?? 0n;
      const wentFar = pc < at.pc || pc > addOffset(at.pc, codeBytes);
      // A far pc with a deeper stack, or with a stack of its own: a handler came first. After a watched access the pc
      // is behind the instruction.
      const fallsThrough = touched.some(({ exact }) => exact);
      const interrupted = wentFar && (handed !== undefined || fallsThrough || stackPointer < at.stackPointer - 16n);
      return { stop, pc: addr(pc), interrupted, accessed: interrupted ? [] : touched };
    }
    throw new RsptraceError('TARGET_STUCK', `a single step at ${hex(at.pc)} does not move the target`, {
      hint: watched ? `leave ${watched.place.spec.text} out` : 'leave this function out of --probe',
    });
  }
}
