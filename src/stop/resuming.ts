import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { firstWhere } from '../base/search.js';
import type { GoOn } from '../clock/index.js';
import type { Batch, Reply, Resume, StopReply } from '../rsp/index.js';
import type { Breakpoints } from './breakpoints.js';
import type { Planted } from './point.js';
import type { Stepper } from './stepping.js';
import type { StopEngineOptions } from './stop-engine-options.js';

/** The runs that are kept. Records that wait are of fewer. */
const mostRuns = 1 << 15;

/** A run of the guest that has ended: from when until when, and how long all runs took until then, in milliseconds. */
interface Run {
  readonly since: number;
  readonly until: number;
  readonly ran: number;
}

/** How long the guest has run, by the host's clock in milliseconds, as `performance.now` counts. */
class RunningTimes {
  /** Ended runs so far, each of which ended in a stop. */
  runs = 0;
  #since: number | undefined;
  #ran = 0;
  readonly #ended: Run[] = [];
  /** The index of the run that was asked for last. */
  #last = 0;

  /** The guest runs from now on. */
  begin(): void {
    this.#since = performance.now();
  }

  /** It has stopped. */
  end(): void {
    const until = performance.now();
    const since = this.#since ?? until;
    this.#ran += until - since;
    this.#ended.push({ since, until, ran: this.#ran });
    this.#since = undefined;
    this.runs++;
    if (this.#ended.length >= 2 * mostRuns) this.#ended.splice(0, this.#ended.length - mostRuns);
  }

  /** How long it had run, in nanoseconds, at a moment of this run or of one before. */
  upTo(hostMs: number): number {
    const since = this.#since;
    if (since !== undefined && hostMs >= since) return (this.#ran + hostMs - since) * 1e6;
    const run = this.#ended[this.#indexAt(hostMs)];
    return ((run?.ran ?? this.#ran) + Math.min(0, hostMs - (run?.until ?? hostMs))) * 1e6;
  }

  /** The last run that had begun at a moment; the first one if none had. */
  #indexAt(hostMs: number): number {
    const runs = this.#ended;
    // Records come in order, so nearly all are of the same run as the one before.
    const last = runs[this.#last];
    const next = runs[this.#last + 1];
    if (last && last.since <= hostMs && !(next && next.since <= hostMs)) return this.#last;
    const behind = firstWhere(runs.length, (index) => (runs[index] as Run).since > hostMs);
    this.#last = Math.max(behind - 1, 0);
    return this.#last;
  }
}

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
    this.times.begin();
    const stop = await this.#goesOn(batch, how);
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
      throw new RsptraceError(
        'RSP_WRITE_REFUSED',
        'the stub refused to write a register or memory, and the guest has gone on',
        {
          hint: 'the instruction under a breakpoint could not be carried out: the guest may have gone wrong',
        },
      );
    }
    return stop;
  }

  /** Goes on from a hart's pc, unless there is an event at it. */
  async from(pc: Addr | undefined, hart: string | undefined): Promise<Next> {
    if (pc !== undefined && this.#points.isWatched(pc)) return 'again';
    return this.resume(this.#options.session.batch(hart));
  }

  #goesOn(batch: Batch, how: Resume): Promise<StopReply | undefined> {
    const leak = this.#options.leak?.();
    const { time, steps } = this.#last;
    // Measuring stops takes steps: the engine may be asked to stop between two of them, and a timer may end there.
    const goOn: GoOn = async (last) => {
      if (!this.#askedToStop) return this.#runs(last, how);
      await last.send();
      return undefined;
    };
    return leak?.resume(batch, how, goOn, this.#stepper.steps > steps ? time : undefined) ?? goOn(batch);
  }

  #runs(batch: Batch, how: Resume): Promise<StopReply> {
    const { observer, sampler } = this.#options;
    const looked = this.#points.late.runs();
    const paused = observer?.runs();
    const sampled = sampler?.runs();
    return batch.resume(how).finally(looked).finally(paused).finally(sampled);
  }
}
