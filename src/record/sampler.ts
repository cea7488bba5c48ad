import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { EventOutput } from '../calls/index.js';
import type { FoundSamples } from '../probes/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import type { StopSampler } from '../stop/index.js';
import { LoadedCode, Looks, OtherPrograms, SampledFrames, Samples } from '../target/stacks/index.js';
import type { Hooked } from '../target/unwind/index.js';
import type { GuestNanos, Sample, SampleFacts } from '../trace/index.js';
import type { Running } from './tracers.js';
import type { Verified } from './verify.js';

/** A period is between these parts of the one that was asked for, so that it is in step with nothing in the target. */
const [least, most] = [0.5, 1.5];
const depth = 127;

/** What the target's present program is walked with. */
interface Ready {
  readonly session: Session;
  readonly looks: Looks;
}

/**
 * Looks at every hart's stack each period that the target runs, beside probes. The interrupt brings the next stop; a
 * probe's stop that comes first does as well.
 */
export class Sampler implements StopSampler {
  readonly #plan: FoundSamples;
  readonly #target: Pick<Verified, 'program' | 'harts'>;
  readonly #run: Running;
  readonly #logger: Logger;
  readonly #samples: Samples;
  #ready: Ready | undefined;
  #ranMs = 0;
  #dueMs: number;
  #interrupted = false;
  #counts = { looks: 0, own: 0, atProbes: 0, stoodNs: 0 };

  constructor(
    plan: FoundSamples,
    target: Pick<Verified, 'program' | 'harts'>,
    output: EventOutput,
    run: Running,
    logger: Logger,
  ) {
    this.#plan = plan;
    this.#target = target;
    this.#run = run;
    this.#logger = logger;
    const want = { depth, mode: 'all', idle: false, awaited: false, by: undefined } as const;
    const frames = new SampledFrames([target.program, ...target.program.others]);
    // Samples have their place among the events: everything before is emitted first.
    const event = (sample: Sample): void =>
      run.engines().whenDigested(() => {
        output.moveTo(sample.time);
        output.emit({ ...sample, time: output.time });
      });
    this.#samples = new Samples(frames, { event }, plan.periodMs, want);
    this.#dueMs = this.#period();
  }

  get facts(): SampleFacts {
    const { samples, idle, incomplete } = this.#samples.counts;
    const { periodMs } = this.#plan;
    const wanted = Math.floor(this.#ranMs / periodMs);
    return { periodNs: Math.round(periodMs * 1e6), wanted, samples, idle, incomplete, ...this.#counts };
  }

  get isDue(): boolean {
    return this.#ranMs >= this.#dueMs;
  }

  get hasInterrupted(): boolean {
    return this.#interrupted;
  }

  runs(): () => void {
    const { session } = this.#run.connection;
    const since = performance.now();
    this.#interrupted = false;
    const interrupt = (): void => {
      if (session.state.kind !== 'running') return;
      this.#interrupted = true;
      this.#ready?.looks.interrupting();
      // An error here also ends the run, which reports it.
      session.interrupt().catch(() => {});
    };
    const timer = setTimeout(interrupt, Math.max(0, this.#dueMs - this.#ranMs));
    return () => {
      clearTimeout(timer);
      this.#ranMs += performance.now() - since;
      // A timer may fire a little early.
      if (this.#interrupted) this.#ranMs = Math.max(this.#ranMs, this.#dueMs);
    };
  }

  async take(time: number, atProbe: boolean): Promise<void> {
    const began = performance.now();
    // One that came late is followed by its next in time, unless that has passed, too.
    this.#dueMs = Math.max(this.#dueMs, this.#ranMs - this.#plan.periodMs) + this.#period();
    const engines = this.#run.engines();
    await engines.catchUp();
    const { looks } = await this.#at(this.#run.connection.session);
    for (const look of await looks.all()) {
      if (look.pc !== undefined && engines.isOwnCode(look.pc)) this.#counts.own++;
      else this.#samples.take(look, this.#target.harts.number(look.hart.id), time as GuestNanos);
    }
    this.#samples.emit();
    this.#counts.looks++;
    if (atProbe) this.#counts.atProbes++;
    this.#counts.stoodNs += Math.round((performance.now() - began) * 1e6);
  }

  forget(): void {
    this.#ready = undefined;
  }

  async #at(session: Session): Promise<Ready> {
    if (this.#ready?.session === session) return this.#ready;
    const { program } = this.#target;
    const hooked: Hooked = (returnAddress) => this.#run.engines().hooked(returnAddress);
    const code = await LoadedCode.find({
      ...program,
      others: OtherPrograms.of(program),
      session,
      logger: this.#logger,
    });
    this.#ready = { session, looks: new Looks(session, program.arch, code, { depth, hooked, walksIdle: false }) };
    return this.#ready;
  }

  #period(): number {
    return this.#plan.periodMs * (least + (most - least) * Math.random());
  }
}

/**
 * Samples need interrupts, and a target that does not play back what has happened.
 * @throws RsptraceError `SAMPLES_UNAVAILABLE`
 */
export async function verifySampling(session: Session): Promise<void> {
  const { features } = session;
  // QEMU says it only while it replays; rr does nothing else.
  if (features.supported.get('ReverseContinue') === '+') {
    throw unavailable('this target replays what it did before, and interrupts are none of that');
  }
  if (!isProcess(features)) return;
  await session.findLocalProcess();
  const why = await session.whyUninterruptible();
  if (why !== undefined) throw unavailable(why);
}

function unavailable(why: string): RsptraceError {
  return new RsptraceError('SAMPLES_UNAVAILABLE', `no stacks can be sampled: ${why}`, {
    hint: "leave the probe 'sample:' out",
  });
}
