import type { Architecture } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import type { Batch, Resume, Session, StopReply } from '../rsp/index.js';
import type { ClockLeak, GoOn, StopLeak, UnknownRest } from './clock-leak.js';
import type { InstructionClock } from './instruction-clock.js';
import type { SteadyClock } from './steady-clock.js';

/** The longest instruction that waits for an interrupt, in bytes. */
const longestWait = 4;
/** Steps that show what an instruction takes: more than a tick of a PC's clock (279 ns). */
const instructions = 300;
/** QEMU's largest `shift`. */
const mostShift = 10;
/** What a step can gain by itself, and a little. A stop that adds more shows a clock that follows the host's. */
const ownNanos = 2 ** (mostShift + 1);

interface SteppedLeakOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly clock: SteadyClock;
  readonly counts: InstructionClock;
  /** The program's code, if the ELF has it. */
  readonly code: (address: Addr, length: number) => Uint8Array | undefined;
}

/**
 * Under `-icount` the host's time leaks from a vCPU's stop to when the machine is marked as stopped. The clock gets it
 * when the machine goes on. A single step has QEMU's timers off (SSTEP_NOTIMER), so nothing leaks at its end.
 * Therefore every stop is left by a step: what the clock gains in it, less one instruction, has leaked.
 *
 * With `sleep=off` the clock jumps to the next timer before the stop is reported, so a step gains nothing more.
 */
export class SteppedLeak implements ClockLeak {
  readonly #options: SteppedLeakOptions;
  /** What an instruction takes; undefined before it was measured. */
  #nanos: number | undefined;
  #total = 0;
  #measured = 0;
  /** A stop has added the host's time. */
  #sleeps: boolean;

  constructor(options: SteppedLeakOptions) {
    this.#options = options;
    this.#nanos = options.counts.nanosPerInstruction;
    this.#sleeps = options.counts.sleeps ?? false;
  }

  get facts(): StopLeak | undefined {
    if (this.#measured === 0) return undefined;
    return {
      totalNs: Math.round(this.#total),
      perStopNs: Math.round(this.#total / this.#measured),
      measured: this.#measured,
      stops: 0,
      rest: this.#sleeps ? 'tick' : JUMPS,
    };
  }

  nothingIsOpen(): void {
    this.#options.clock.catchUp();
  }

  arrived(): void {}

  wantsAgain(): boolean {
    return false;
  }

  async resume(batch: Batch, how: Resume, goOn: GoOn, stepped?: number): Promise<StopReply | undefined> {
    const { clock, session } = this.#options;
    if (stepped !== undefined) return this.#resumeAfterStep(batch, goOn, stepped);
    const { state } = session;
    const hart = state.kind === 'idle' && state.stop.kind === 'signal' ? state.stop.hart : undefined;
    if (how.kind !== 'continue' || hart === undefined) return goOn(batch);
    const time = clock.request(batch);
    const pc = batch.readRegister(this.#options.arch.pc);
    await batch.send();
    const before = time();
    if (pc.value === undefined || !(await this.#mayStep(addr(pc.value), hart))) return goOn(session.batch(hart));
    const stop = await session.resume({ kind: 'step', hart });
    return stop.kind === 'signal' ? this.#resumeAfterStep(session.batch(hart), goOn, before) : stop;
  }

  async #resumeAfterStep(batch: Batch, goOn: GoOn, before: number): Promise<StopReply | undefined> {
    const time = this.#options.clock.request(batch);
    if (this.#nanos === undefined) {
      await batch.send();
      const gained = time() - before;
      const stop = await this.#measureInstruction();
      if (stop !== undefined) return stop;
      this.#learn(gained);
      return goOn(this.#options.session.batch());
    }
    const stop = await goOn(batch);
    this.#learn(time() - before);
    return stop;
  }

  #learn(gained: number): void {
    const leaked = gained - (this.#nanos ?? 0);
    if (gained > ownNanos + this.#options.clock.info.resolutionNs)
      this.#sleeps ||= this.#options.counts.sleeps !== false;
    this.#measured++;
    // Below zero by what the clock's tick hides: so the sum has no bias.
    this.#total += leaked;
    this.#options.clock.takeOut(leaked);
  }

  /** Runs some instructions, a step each. Returns how the target ended if it did. */
  async #measureInstruction(): Promise<StopReply | undefined> {
    const { session, clock, arch } = this.#options;
    this.#nanos = 1;
    const { state } = session;
    const hart = state.kind === 'idle' && state.stop.kind === 'signal' ? state.stop.hart : undefined;
    if (hart === undefined) return undefined;
    let begun: number | undefined;
    let last: bigint | undefined;
    for (let steps = 0; ; steps++) {
      const batch = session.batch(hart);
      const time = clock.request(batch);
      const pc = batch.readRegister(arch.pc);
      await batch.send();
      begun ??= time();
      const gained = time() - begun;
      // At a breakpoint a step goes nowhere.
      const isOver = steps === instructions || pc.value === undefined || pc.value === last;
      if (isOver || !(await this.#mayStep(addr(pc.value), hart))) {
        if (steps > 0) this.#nanos = 2 ** Math.min(mostShift, Math.round(Math.log2(Math.max(1, gained / steps))));
        return undefined;
      }
      last = pc.value;
      const stop = await session.resume({ kind: 'step', hart });
      if (stop.kind !== 'signal') return stop;
    }
  }

  /** While an instruction waits for an interrupt, a step would last for ever: its timers are off. */
  async #mayStep(pc: Addr, hart: string): Promise<boolean> {
    const { arch, session, code } = this.#options;
    const bytes = code(pc, longestWait) ?? (await session.memory(hart).read(pc, longestWait));
    return bytes !== undefined && arch.waits?.(bytes) === false;
  }
}

/** Why durations are not known with `sleep=off`. */
export const JUMPS: UnknownRest = {
  perStopNs: undefined,
  why: 'with -icount sleep=off each stop moves the clock on to the next timer of the guest',
  wayOut: 'leave sleep=off out',
};
