import type { Batch, Resume, StopReply } from '../rsp/index.js';
import { Durations } from '../trace/index.js';
import type { ClockLeak, GoOn, StopLeak } from './clock-leak.js';
import type { SteadyClock } from './steady-clock.js';

/** Stops with nothing to do: so many at the beginning, then one after so many others. */
const calibration = { first: 24, every: 64 };

/**
 * Where a machine's clock follows the host's: it goes on at a breakpoint and stops there again, having done nothing.
 * The least that this has ever added is taken out of every stop. A stop with something to do adds more: QEMU
 * translates the code behind it anew, and runs code beside breakpoints an instruction at a time. So durations stay
 * upper bounds, whatever else the host has to do.
 */
export class RepeatedLeak implements ClockLeak {
  readonly #clock: SteadyClock;
  /** At the last breakpoint: the clock, with nothing taken out. */
  #last: number | undefined;
  /** Its place, if the guest was to go on with nothing to do. */
  #nothing: { readonly pc: bigint; readonly hart: string | undefined } | undefined;
  /** Nothing is taken out of the time since the last breakpoint. */
  #wasIdle = true;
  #stops = 0;
  #asked = 0;
  #total = 0;
  readonly #leaks = new Durations();
  /** From a stop to the next one, without what was taken out. */
  readonly #between = new Durations();

  constructor(clock: SteadyClock) {
    this.#clock = clock;
  }

  get facts(): StopLeak | undefined {
    if (this.#stops === 0) return undefined;
    return {
      totalNs: Math.round(this.#total),
      perStopNs: this.#least,
      measured: this.#leaks.count,
      stops: this.#asked,
      rest: {
        perStopNs: this.#between.count > 0 ? Math.round(this.#between.percentile(0.5)) : undefined,
        why: 'QEMU translates all code anew after a stop',
        wayOut: 'give QEMU -icount shift=0',
      },
    };
  }

  nothingIsOpen(): void {
    this.#clock.catchUp();
    this.#wasIdle = true;
  }

  arrived(pc: bigint, hart: string | undefined, time: number): void {
    const now = time + this.#clock.takenOut;
    const gained = this.#last === undefined ? undefined : Math.max(0, now - this.#last);
    const nothing = this.#nothing;
    const wasIdle = this.#wasIdle;
    this.#last = now;
    this.#nothing = undefined;
    this.#wasIdle = false;
    if (gained === undefined) return;
    const isSame = nothing !== undefined && nothing.pc === pc && nothing.hart === hart;
    if (isSame) this.#leaks.add(gained);
    if (wasIdle) return;
    // An interrupt's handler may have run first: that time is the guest's.
    const taken = Math.min(this.#least, gained);
    if (!isSame) this.#between.add(gained - taken);
    this.#total += taken;
    this.#clock.takeOut(taken);
  }

  wantsAgain(pc: bigint, hart: string | undefined): boolean {
    if (this.#asked >= calibration.first && this.#stops < this.#asked * calibration.every) return false;
    this.#asked++;
    this.#nothing = { pc, hart };
    return true;
  }

  resume(batch: Batch, _how: Resume, goOn: GoOn): Promise<StopReply | undefined> {
    this.#stops++;
    return goOn(batch);
  }

  /** What a stop adds at least; 0 before one was measured. */
  get #least(): number {
    return this.#leaks.count === 0 ? 0 : this.#leaks.min;
  }
}
