import type { Architecture } from '../../arch/index.js';
import { type Addr, addr } from '../../base/addr.js';
import type { SteadyClock } from '../../facts/index.js';
import type { Batch, Resume, Session, StopReply } from '../../rsp/index.js';

/** Stops with nothing to do: so many at the beginning, then one after so many others. */
const calibration = { first: 24, every: 64 };
/** The longest instruction that waits for an interrupt, in bytes. */
const longestWait = 4;

export interface ClockLeakOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly clock: SteadyClock;
  /** The clock counts instructions (`-icount`), and each takes this long. */
  readonly nanosPerInstruction: number | undefined;
  /** The program's code, if the ELF has it. */
  readonly code: (address: Addr, length: number) => Uint8Array | undefined;
}

/** What stops have added to the guest's clock, in nanoseconds. */
export interface StopLeak {
  readonly totalNs: number;
  /** Of one stop: the mean of all, or the median of those that were measured. */
  readonly perStopNs: number;
  /** What remains of one stop in the trace's times: the standard deviation, or half a tick of the clock. */
  readonly spreadNs: number;
  /** Every stop's own was measured. Else QEMU's code is also slower after each, which stays in the times. */
  readonly isExact: boolean;
  /** How often it was measured. */
  readonly measured: number;
  /** Stops with nothing to do that it took: they are among the stops of the recording. */
  readonly stops: number;
}

/**
 * Takes out of a machine's clock what QEMU lets leak into it at stops.
 *
 * Under `-icount` the host's time leaks from a vCPU's stop to when the machine is marked as stopped. The clock
 * gets it when the machine goes on. A single step has QEMU's timers off (SSTEP_NOTIMER), so nothing leaks at its end.
 * Therefore every stop is left by a step: what the clock gains in it, less one instruction, has leaked.
 *
 * Without `-icount` the leak is measured: the machine goes on at a breakpoint and stops there again, having done
 * nothing. The median is taken out of every other stop, because on a busy machine few stops take far longer. What QEMU
 * takes to translate code anew after a stop stays in.
 */
export class ClockLeak {
  readonly #options: ClockLeakOptions;
  /** The last stop's place, while a stop with nothing to do is awaited. */
  #nothing: { readonly pc: bigint; readonly hart: string | undefined; readonly time: number } | undefined;
  /** The time of the latest hit. */
  #latest = Number.NEGATIVE_INFINITY;
  #stops = 0;
  /** How many stops with nothing to do there were. */
  #asked = 0;
  #total = 0;
  /** Without `-icount`: what was measured, the least first. */
  readonly #leaks: number[] = [];
  /** Of what was measured: number, mean, sum of squared distances from the mean (Welford). */
  #measured = 0;
  #mean = 0;
  #squares = 0;

  constructor(options: ClockLeakOptions) {
    this.#options = options;
  }

  /** Undefined before anything was measured. */
  get facts(): StopLeak | undefined {
    if (this.#measured === 0) return undefined;
    const { clock, nanosPerInstruction } = this.#options;
    const spread = Math.sqrt(this.#squares / this.#measured);
    return {
      totalNs: Math.round(this.#total),
      perStopNs: Math.round(nanosPerInstruction === undefined ? this.#median : this.#mean),
      spreadNs: Math.round(nanosPerInstruction === undefined ? spread : clock.info.resolutionNs / 2),
      isExact: nanosPerInstruction !== undefined,
      measured: this.#measured,
      stops: this.#asked,
    };
  }

  /** At a stop. No call is open: the guest makes up for lost time where it waits for its clock. */
  nothingIsOpen(): void {
    this.#options.clock.catchUp();
  }

  /** At a breakpoint, before it is handled. True: the guest is to go on, and will stop here again. */
  wantsAgain(pc: bigint, hart: string | undefined, time: number): boolean {
    if (this.#options.nanosPerInstruction !== undefined) return false;
    // Else time would stand still until it has made up for all that was taken out too much.
    if (time < this.#latest) this.#total -= this.#options.clock.giveBack(this.#latest - time);
    this.#latest = Math.max(this.#latest, time);
    const before = this.#nothing;
    this.#nothing = undefined;
    // An interrupt may have come first, or another hart.
    if (before?.pc === pc && before.hart === hart) this.#learn(time - before.time);
    if (this.#asked >= calibration.first && this.#stops < this.#asked * calibration.every) return false;
    this.#asked++;
    this.#nothing = { pc, hart, time };
    return true;
  }

  /**
   * Goes on from a stop with nothing but what has been handled.
   * @param stepped since this time, by a single step that was necessary
   */
  async resume(batch: Batch, how: Resume, stepped: number | undefined): Promise<StopReply> {
    const { clock, nanosPerInstruction, session } = this.#options;
    this.#stops++;
    if (this.#nothing !== undefined) return batch.resume(how);
    if (nanosPerInstruction === undefined) {
      this.#takeOut(this.#median);
      return batch.resume(how);
    }
    if (stepped !== undefined) return this.#resumeAfterStep(batch, how, stepped);
    const { state } = session;
    const hart = state.kind === 'idle' && state.stop.kind === 'signal' ? state.stop.hart : undefined;
    if (how.kind !== 'continue' || hart === undefined) return batch.resume(how);
    const time = clock.request(batch);
    const pc = batch.readRegister(this.#options.arch.pc);
    await batch.send();
    const before = time();
    if (pc.value === undefined || !(await this.#mayStep(addr(pc.value), hart))) return session.batch(hart).resume(how);
    const stop = await session.resume({ kind: 'step', hart });
    return stop.kind === 'signal' ? this.#resumeAfterStep(session.batch(hart), how, before) : stop;
  }

  async #resumeAfterStep(batch: Batch, how: Resume, before: number): Promise<StopReply> {
    const { clock, nanosPerInstruction = 0 } = this.#options;
    const time = clock.request(batch);
    const stop = await batch.resume(how);
    this.#learn(Math.max(0, time() - before - nanosPerInstruction));
    return stop;
  }

  /** While an instruction waits for an interrupt, a step would last for ever: its timers are off. */
  async #mayStep(pc: Addr, hart: string): Promise<boolean> {
    const { arch, session, code } = this.#options;
    const bytes = code(pc, longestWait) ?? (await session.memory(hart).read(pc, longestWait));
    return bytes !== undefined && arch.waits?.(bytes) === false;
  }

  get #median(): number {
    return Math.round(this.#leaks[this.#leaks.length >> 1] ?? 0);
  }

  #learn(nanos: number): void {
    if (this.#options.nanosPerInstruction === undefined) {
      this.#leaks.push(nanos);
      this.#leaks.sort((a, b) => a - b);
    }
    this.#measured++;
    const distance = nanos - this.#mean;
    this.#mean += distance / this.#measured;
    this.#squares += distance * (nanos - this.#mean);
    this.#takeOut(nanos);
  }

  #takeOut(nanos: number): void {
    this.#total += nanos;
    this.#options.clock.takeOut(nanos);
  }
}
