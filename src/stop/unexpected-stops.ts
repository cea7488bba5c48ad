import { hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { SignalStop } from '../rsp/index.js';

/** After this many consecutive stops without a probe, the target is considered stuck. */
const limit = 1000;

/** Counts stops that no probe caused. */
export class UnexpectedStops {
  readonly #logger: Logger;
  #inARow = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** A stop that a probe caused. */
  expected(): void {
    this.#inARow = 0;
  }

  /** @throws RsptraceError `TARGET_STUCK` */
  seen(stop: SignalStop, pc: bigint | undefined): void {
    const where = pc === undefined ? undefined : hex(pc);
    this.#logger.debug({ stop: stop.signal, pc: where }, 'a stop without a probe');
    if (++this.#inARow <= limit) return;
    throw new RsptraceError('TARGET_STUCK', `the target keeps stopping at ${where ?? '?'}, where no probe is`, {
      hint: 'is another debugger using this stub, or does the program trap on its own?',
    });
  }
}
