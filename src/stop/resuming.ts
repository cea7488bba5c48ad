import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Batch, Reply, Resume, StopReply } from '../rsp/index.js';
import type { Breakpoints } from './breakpoints.js';
import type { Planted } from './point.js';
import { RunningTimes } from './running-times.js';
import type { Stepper } from './stepping.js';
import type { StopEngineOptions } from './stop-engine-options.js';

/**
 * What follows a stop: the next stop; undefined if the engine was asked to stop. `again`: the target stands where
 * something is still to be handled.
 */
export type Next = StopReply | undefined | 'again';

/** The last write at a hit. */
export interface LastWrite {
  readonly batch: Batch;
  readonly inserts: readonly Planted[];
  /** The hit was handled before. */
  readonly repeated: boolean;
}

/**
 * How the target goes on from a stop: whoever must know that it runs is informed, and the time that it runs is kept.
 */
export class Resuming {
  readonly #options: StopEngineOptions;
  readonly #points: Breakpoints;
  readonly #stepper: Stepper;
  readonly times = new RunningTimes();
  /** At the last hit: the clock, and how many steps there had been. */
  #last = { time: 0, steps: 0 };
  #askedToStop = false;

  constructor(options: StopEngineOptions, points: Breakpoints, stepper: Stepper) {
    this.#options = options;
    this.#points = points;
    this.#stepper = stepper;
  }

  get askedToStop(): boolean {
    return this.#askedToStop;
  }

  /** The target is not resumed any more. Interrupts it if it runs. */
  async stop(): Promise<void> {
    const { session } = this.#options;
    if (this.#askedToStop) return;
    this.#askedToStop = true;
    if (session.state.kind === 'running') await session.interrupt();
  }

  /** The target stands at a hit. */
  hit(time: number): void {
    this.#last = { time, steps: this.#stepper.steps };
  }

  /** Resumes with what the batch holds. If the engine was asked to stop meanwhile, the batch alone is sent. */
  async resume(batch: Batch, how: Resume = { kind: 'continue' }): Promise<StopReply | undefined> {
    if (this.#askedToStop) {
      await batch.send();
      return undefined;
    }
    const { observer, sampler } = this.#options;
    this.times.begin();
    const looked = this.#points.late.runs();
    const paused = observer?.runs();
    const sampled = sampler?.runs();
    const stop = await this.#goesOn(batch, how).finally(looked).finally(paused).finally(sampled);
    this.times.end();
    return stop;
  }

  /** Resumes from the hit at `at`, and digests it while the guest runs. `writes`: what the stub must not refuse. */
  async goOn(
    at: Addr,
    { batch, inserts, repeated }: LastWrite,
    writes: readonly Reply<boolean>[] = [],
    how?: Resume,
  ): Promise<StopReply | undefined> {
    const next = this.resume(batch, how);
    // If digesting throws (a full disk), nobody awaits this promise any more. A wire that breaks then must not end
    // the process.
    next.catch(() => {});
    if (!repeated) this.#options.tracer.digest();
    const stop = await next;
    // The connection may have ended before all was answered.
    if (stop === undefined || stop.kind === 'gone') return stop;
    await this.#points.check(inserts, at);
    if (writes.some((reply) => !reply.value)) {
      throw new RsptraceError('RSP_WRITE_REFUSED', 'the stub refused to write a register, and the guest has gone on', {
        hint: 'the instruction under a breakpoint could not be carried out: the guest may have gone wrong',
      });
    }
    return stop;
  }

  /** Goes on from a hart's pc, unless there is an event at it. */
  async from(pc: Addr | undefined, hart: string | undefined): Promise<Next> {
    if (pc !== undefined && this.#points.isWatched(pc)) return 'again';
    return this.resume(this.#options.session.batch(hart));
  }

  #goesOn(batch: Batch, how: Resume): Promise<StopReply> {
    const leak = this.#options.leak?.();
    const { time, steps } = this.#last;
    return leak?.resume(batch, how, this.#stepper.steps > steps ? time : undefined) ?? batch.resume(how);
  }
}
