import type { Logger } from '../base/logger.js';
import { isRefusal, type Refusal } from '../base/refusal.js';
import type { Session } from '../rsp/index.js';
import type { HiddenSource } from '../scratch/index.js';
import type { ResetWatch } from '../stop/index.js';
import type { ResetVector } from '../target/index.js';

interface ResetsOptions {
  readonly session: Session;
  readonly vector: ResetVector;
  readonly hidden: HiddenSource | Refusal | undefined;
  readonly logger: Logger;
  /** The old boot is over: writes its last records to the trace, and forgets what was inserted. */
  readonly ended: (time: number | undefined) => Promise<void>;
  /** Marks the reset in the trace. */
  readonly emit: () => void;
  /** Events in the trace so far. */
  readonly events: () => number;
  /** The machine is about to run: inserts everything that a machine gets before its first instruction. */
  readonly insert: () => Promise<void>;
}

/**
 * The machine that rsptrace started may be reset. Then QEMU keeps RAM and breakpoints, and loads its program anew:
 * nothing of ours is left in the program.
 */
export class Resets implements ResetWatch {
  readonly #options: ResetsOptions;
  count = 0;
  /** {@link ResetsOptions.events} at the last reset of the machine. */
  #eventsBefore = -1;

  constructor(options: ResetsOptions) {
    this.#options = options;
  }

  /** From now on resets are noticed, if the stub takes a breakpoint at the reset vector. */
  async watch(): Promise<void> {
    const { vector, logger } = this.#options;
    if (await vector.watch()) return;
    logger.warn({}, 'the stub takes no breakpoint at the reset vector: a reset goes unseen');
  }

  at(pc: bigint, hart: string | undefined): ReturnType<ResetWatch['at']> {
    return this.#options.vector.stopped(pc, hart);
  }

  async again(time: number | undefined): Promise<void> {
    const { session, vector, hidden, logger, ended, emit, events, insert } = this.#options;
    const isHidden = hidden !== undefined && !isRefusal(hidden);
    await ended(time);
    // A firmware that finds that it ran before resets the machine once more. If RAM is hidden, the firmware runs
    // without the breakpoint.
    const isSame = vector.firmwareResets && !isHidden && events() === this.#eventsBefore;
    if (!isSame) {
      this.count++;
      emit();
    }
    this.#eventsBefore = events();
    const batch = session.batch();
    for (const breakpoint of session.breakpoints) batch.removeBreakpoint(breakpoint);
    await batch.send();
    // x86's firmware runs meanwhile.
    const refused = isHidden ? await hidden.hideAgain() : undefined;
    if (session.state.kind !== 'idle') return;
    if (refused) logger.warn({ why: refused.refused }, 'the kernel is told of all RAM after this reset');
    await this.watch();
    await insert();
    logger.info({ resets: this.count }, 'the machine was reset');
  }
}
