import type { ProcessCode } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { messageOf, RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import { type Batch, insist, type SignalStop } from '../rsp/index.js';
import type { ProbeFact } from '../trace/index.js';
import type { HookFrame } from '../unwind/index.js';
import { engineChoices, planEngines, unavailable } from './engine-choice.js';
import type { EnginesOptions } from './engines-options.js';
import { changesItsCode } from './linux-kernel.js';
import { processCode, processMemory, whyProcessStops } from './process-memory.js';
import {
  closeScratch,
  type Intercept,
  isRefusal,
  ProvenScratch,
  type Refusal,
  type Region,
  runIntoKernel,
  type Scratch,
  slackOf,
} from './scratch/index.js';
import type { StopEngine } from './stop-engine.js';
import { StopWarning } from './stop-warning.js';
import { briefCalls } from './target/brief-calls.js';
import { clearSlack } from './target/clear-slack.js';
import { cleanChild } from './target/forked-child.js';
import { LiveDrain } from './target/live-drain.js';
import { defined, loadedLibrary } from './target/loaded-library.js';
import { TrampolineTime } from './target/own-time.js';
import { processScale } from './target/process-clock.js';
import { codeRoom, type Site, type SitePlan } from './target/sites.js';
import { StoppedDrain } from './target/stopped-drain.js';
import { TargetEngine } from './target/target-engine.js';
import { findThreadWords, withThreadWords } from './target/thread-words.js';
import type { RecordCounter, RecordTime } from './target/told-records.js';
import { ProcessUnwinder, unwinderRoom } from './target/unwinder.js';
import { remembered } from './target/words.js';
import type { Beside } from './tracer.js';

/**
 * Chooses an engine for every probe and joins the two: the stop engine lets the guest run; where probes can do without stops, their
 * trampolines are installed at the first hit, when the program runs and its memory is mapped as it will stay.
 */
export class Engines implements Beside {
  /** What trampolines take, where that is known and no probe stops the target. */
  ownTime: TrampolineTime | undefined;
  readonly #options: EnginesOptions;
  readonly #logger: Logger;
  /** What the program's code alone tells. */
  readonly #planned: SitePlan;
  #plan: SitePlan;
  #why: Map<number, string>;
  #target: TargetEngine | undefined;
  #scratch: Scratch | undefined;
  #drain: LiveDrain | undefined;
  #atStops: StoppedDrain | undefined;
  readonly #memory = new ProvenScratch();
  #settled: boolean;
  #tailLost = false;
  #exiting = false;
  readonly #warning: StopWarning;
  #unwinder: ProcessUnwinder | undefined;
  /** Behind the program's text. */
  #slack: Region | undefined;
  #source: string | undefined;
  #pastWire = false;
  /** Of the programs that the process ran before. */
  #earlier = { records: 0, missing: 0 };

  /** @throws RsptraceError `ENGINE_UNAVAILABLE` where the engine without stops is asked for and no probe can use it */
  constructor(options: EnginesOptions) {
    this.#options = options;
    this.#logger = options.logger ?? silent;
    this.#warning = new StopWarning(this.#logger);
    this.#settled = !options.settles;
    this.#planned = planEngines(options);
    this.#plan = this.#planned;
    this.#why = new Map(this.#plan.refused);
    if (options.wanted === 'target' && this.#plan.sites.length === 0) throw unavailable(this.#why.get(0));
  }

  /** The program has come to where its page table stays as it is. */
  settle(): void {
    this.#settled = true;
  }

  /** Enough events: what has not been looked at yet is left out. */
  enough(): void {
    this.#target?.enough();
  }

  /** As it stands: before the first hit what is planned, after it what is done. */
  get choices(): readonly ProbeFact[] {
    return engineChoices(this.#options, this.#why);
  }

  /** Where no probe is, since it would stop the target and none may. */
  get leftOut(): readonly Addr[] {
    return this.choices.filter(({ engine }) => engine === 'none').map(({ address }) => address);
  }

  /** Where the ring and the trampolines lie, once they are installed. */
  get scratch(): string | undefined {
    return this.#source;
  }

  /** Records were read out of memory that is shared with the target, not through the stub. */
  get pastWire(): boolean {
    return this.#pastWire;
  }

  /** What stands behind a return address that a trampoline has put in place of the original. */
  hooked(returnAddress: bigint): HookFrame | undefined {
    return this.#target?.hooked(returnAddress);
  }

  /** The target has gone, and with it what was in a ring that only a stop could read. */
  get tailLost(): boolean {
    return this.#tailLost;
  }

  get records(): number {
    return this.#earlier.records + (this.#target?.records ?? 0);
  }

  /**
   * At a hit: installs the trampolines and takes their probes' breakpoints out.
   * @returns false when it is too early in the program for that
   */
  async arrive(stops: StopEngine, onError: (thrown: unknown) => void): Promise<boolean> {
    const { session, arch, wanted, tracer, elf, inProcess, thresholdNs } = this.#options;
    const code = inProcess ? processCode(arch) : arch.probeCode;
    if (!code || this.#plan.sites.length === 0) return true;
    if (!this.#settled) return false;
    if (this.#target) return this.#patchWaiting(this.#target, stops);
    const stopsOnly = inProcess && whyProcessStops(session);
    if (stopsOnly) return this.#fallBack(stopsOnly);
    const threads = inProcess && (await findThreadWords(session));
    if (inProcess && threads === undefined) return false;
    if (threads && isRefusal(threads)) return this.#fallBack(threads.refused);
    this.#why = new Map(this.#planned.refused);
    if (changesItsCode(elf)) await this.#planAnew();
    const plan = this.#plan;
    const [first] = plan.sites;
    if (first === undefined) return true;
    const scratch = await this.#takeScratch(first.plan.address, stops);
    if (scratch === undefined) return false;
    if (isRefusal(scratch)) return this.#fallBack(scratch.refused);
    this.#scratch = scratch;
    this.#pastWire ||= scratch.shared !== undefined;
    const { process } = code;
    const reserved = inProcess && process ? unwinderRoom(process, plan.sites.length) : 0;
    try {
      const time = plan.sites.some(({ counters }) => counters === 0) ? await this.#recordTime(scratch) : undefined;
      const nests = this.#options.harts === 1 && !inProcess;
      this.#slack = await slackOf({ session, arch, elf });
      const target = new TargetEngine({
        session,
        arch,
        code,
        sites: threads ? withThreadWords(plan.sites, threads.offset) : plan.sites,
        slotShift: plan.slotShift,
        scratch,
        reserved,
        near: this.#slack,
        tracer,
        time: time?.record ?? ((ticks) => ticks),
        hartNumber:
          inProcess && threads
            ? remembered((word) => inProcess.threadNumber(threads.id(word)))
            : this.#options.hartNumber,
        nests,
        // Which calls are brief without trampolines, only the client knows.
        brief: time && nests && !this.ownTime ? briefCalls(thresholdNs, time.counter) : undefined,
        chained: changesItsCode(elf),
        logger: this.#logger,
      });
      for (const [index, why] of target.refused) this.#why.set(index, why);
      this.ownTime?.learn(code, target.placement);
      if (inProcess && process) {
        this.#unwinder = await ProcessUnwinder.find(session, elf, scratch, process);
        const room = addOffset(scratch.code.address, scratch.code.size - reserved);
        await this.#unwinder?.register(room, target.placement.hooks);
      }
      await target.install((piece) => stops.points.areIn(piece));
      this.#noteChanged(target);
      if (target.sites.length + target.waiting === 0) throw unavailable(this.#why.get(first.index));
      this.#target = target;
      this.#source = scratch.source;
      if (inProcess && process) session.beforeChildGoes = (child) => this.#clean(child, target, process);
    } catch (thrown) {
      if (session.state.kind === 'idle' && scratch.calls) await this.#release();
      await closeScratch(scratch);
      this.#tellOfStops(messageOf(thrown));
      if (wanted === 'target' || !(thrown instanceof RsptraceError)) throw thrown;
      return true;
    }
    const target = this.#target;
    stops.points.leaveToSteps(target.ends);
    await this.#disarm(stops, target.sites);
    if (target.breakpoint !== undefined) {
      await stops.pause(target.breakpoint);
      await this.#pauseAtExit(stops, scratch);
      // Of what counts instructions two runs are alike; Linux may be in user mode, from where its memory is not seen.
      const interruptible = this.#options.nanosPerInstruction === undefined && !changesItsCode(elf);
      const interrupts = interruptible && StoppedDrain.gains(session);
      this.#atStops = new StoppedDrain(target, session, interrupts, onError);
    } else {
      this.#drain = new LiveDrain(target, onError);
    }
    const { waiting } = target;
    this.#logger.info({ probes: target.sites.length, waiting, scratch: scratch.source }, 'trampolines are installed');
    return waiting === 0;
  }

  /** At a later hit: an interrupt had come in the middle of what a jump replaces. */
  async #patchWaiting(target: TargetEngine, stops: StopEngine): Promise<boolean> {
    const sites = await target.patchWaiting((piece) => stops.points.areIn(piece));
    stops.points.leaveToSteps(target.ends);
    this.#noteChanged(target);
    await this.#disarm(stops, sites);
    if (sites.length > 0)
      this.#logger.info({ probes: sites.length, waiting: target.waiting }, 'more functions are patched');
    return target.waiting === 0;
  }

  /** Takes the breakpoints out of functions that have trampolines now, and of those that may have neither. */
  async #disarm(stops: StopEngine, sites: readonly Site[]): Promise<void> {
    await stops.disarm([...sites.map(({ plan: { address } }) => address), ...this.leftOut]);
  }

  #noteChanged(target: TargetEngine): void {
    for (const { index } of target.changed) this.#why.set(index, "its code in the target is not the ELF's any more");
  }

  /** A process whose ring is read at stops only: the last one is where it calls `exit`. */
  async #pauseAtExit(stops: StopEngine, scratch: Scratch): Promise<void> {
    if (!scratch.calls) return;
    const { session, elf } = this.#options;
    const library =
      defined(elf, 'exit') === undefined && (await loadedLibrary(session, scratch, /\/(libc[.-]|ld-musl)/));
    const exit = defined(library || elf, 'exit');
    if (exit !== undefined)
      await stops.pause(exit, () => {
        this.#exiting = true;
      });
  }

  runs(): () => void {
    return this.#atStops?.runs() ?? (() => {});
  }

  async handles(stop: SignalStop, resume: Batch): Promise<boolean> {
    return (await this.#atStops?.handles(stop, resume)) ?? false;
  }

  /** What happened before a stop comes first, all of it where the stop itself `tells` of something. */
  async stopped(tells: boolean): Promise<void> {
    if (!this.#target) return;
    if (tells) this.#warning.stopped(() => this.choices);
    await (this.#atStops?.stopped(tells) ?? this.#target.drainStopped({ all: tells, pending: tells }));
  }

  /**
   * The process runs another program, or the machine was reset: tells what the old program had still written. A hit in the new one begins anew.
   * @param sameRam the new program finds RAM as the old one left it, but for what is loaded
   * @returns where the probes are that had trampolines
   */
  async restart(sameRam = false): Promise<readonly Addr[]> {
    this.#drain?.stop();
    this.#settled = !this.#options.settles;
    this.#plan = this.#planned;
    this.#options.session.beforeChildGoes = undefined;
    const [target, scratch] = [this.#target, this.#scratch];
    this.#target = undefined;
    this.#atStops = undefined;
    this.#scratch = undefined;
    this.#memory.forget();
    this.#unwinder = undefined;
    if (!target) return [];
    const missing = await this.#readOut(target, scratch);
    await closeScratch(scratch);
    if (sameRam && this.#slack) await clearSlack(this.#options.session, this.#slack, target.placement.code);
    this.#earlier = { records: this.#earlier.records + target.records, missing: this.#earlier.missing + missing };
    return target.sites.map(({ plan: { address } }) => address);
  }

  /** Reads what a program that has ended has left. How much is missing. */
  async #readOut(target: TargetEngine, scratch: Scratch | undefined): Promise<number> {
    while (target.digest(Number.POSITIVE_INFINITY));
    target.drainLive();
    if (scratch?.shared && (await target.flush())) target.drainLive();
    if (!scratch?.shared && !this.#exiting) this.#tailLost = true;
    await this.#tellCounted(target, scratch?.shared !== undefined);
    const dropped = scratch?.shared ? await target.dropped() : 0;
    return dropped + (await target.finish(scratch?.shared !== undefined));
  }

  async #release(): Promise<void> {
    await this.#unwinder?.remove();
    await this.#scratch?.release();
  }

  async #clean(child: string, target: TargetEngine, code: ProcessCode): Promise<void> {
    if (await cleanChild(this.#options.session, child, target.placement, code)) return;
    this.#logger.warn({ child }, 'the child of a fork may still run trampolines');
  }

  async #recordTime(scratch: Scratch): Promise<{ readonly record: RecordTime; readonly counter: RecordCounter }> {
    const { session, arch, inProcess, nanosPerInstruction, wanted } = this.#options;
    const clock = arch.probeCode?.process?.clock;
    const processTime = inProcess && clock && processScale(session, clock, scratch, inProcess.traceTime);
    const counter = await (processTime || this.#options.counter(scratch));
    if (nanosPerInstruction === undefined || (wanted !== 'target' && this.#why.size > 0))
      return { record: counter.time, counter };
    this.ownTime = new TrampolineTime(nanosPerInstruction, this.ownTime?.facts);
    return { record: this.ownTime.over(counter.time), counter };
  }

  /**
   * The recording ends: reads what is left and, where the target still stands before us, takes the patches out.
   * @returns records that are missing, because nobody drained in time or their writer never came back
   */
  async leave(standing: boolean): Promise<{ readonly missing: number }> {
    this.#drain?.stop();
    const target = this.#target;
    if (standing) await this.#memory.giveUp();
    let { missing } = this.#earlier;
    const unanswered = this.#memory.unanswered;
    if (!target && unanswered !== undefined && this.#options.wanted !== 'target') this.#tellOfStops(unanswered);
    if (!target) return { missing };
    try {
      const { session, arch } = this.#options;
      if (standing) await insist(session, () => runIntoKernel(session, arch, this.#logger));
      if (standing && session.state.kind === 'idle') {
        await target.leave();
        await this.#tellCounted(target, true);
        missing += await insist(session, () => this.#putAway(target));
        missing += await target.finish(true);
      } else missing += await this.#readOut(target, this.#scratch);
    } finally {
      await closeScratch(this.#scratch);
    }
    return { missing };
  }

  /** What is left to do when the patches are out; may be done twice. How many records the target has dropped. */
  async #putAway(target: TargetEngine): Promise<number> {
    const scratch = this.#scratch?.source;
    const dropped = await target.dropped();
    const touched = await this.#scratch?.verifyGuards();
    if (touched !== undefined) this.#logger.warn({ scratch }, touched);
    if (await target.idle()) await this.#release();
    else this.#logger.info({ scratch }, 'calls are still open: their trampolines stay, harmless');
    return dropped;
  }

  async #tellCounted(target: TargetEngine, reachable: boolean): Promise<void> {
    const all = await insist(this.#options.session, () => target.counted(reachable));
    for (const [address, counts] of all) this.#options.counted(address, counts);
  }

  /** Plans with the code that stands in the target now. */
  async #planAnew(): Promise<void> {
    const batch = this.#options.session.batch();
    const reads = this.#options.plans.map((plan) => ({ plan, reply: batch.readMemory(plan.address, plan.codeSize) }));
    await batch.send();
    const code = new Map(reads.map(({ plan, reply }) => [plan.address, reply.value]));
    const bytesAt = (address: Addr, length: number): Uint8Array | undefined => code.get(address)?.subarray(0, length);
    this.#plan = planEngines({ ...this.#options, bytesAt, looks: undefined });
    for (const [index, why] of this.#plan.refused) this.#why.set(index, why);
    if (this.#plan.sites.length === 0) this.#fallBack(this.#plan.refused.get(0) ?? 'no function can be patched');
  }

  /** Undefined where it is too early. */
  #takeScratch(text: Addr, stops: StopEngine): Promise<Scratch | Refusal | undefined> {
    const { session, arch, elf, inProcess, scratch } = this.#options;
    const process = inProcess && processMemory(this.#plan);
    const intercept: Intercept = (places, then) => stops.points.intercept(places, then);
    const target = { session, arch, elf, text, process, intercept, logger: this.#logger };
    const taken = this.#memory.take({ ...scratch, ...target, codeSize: codeRoom(this.#plan.sites) });
    return taken.catch((thrown: unknown) => {
      this.#tellOfStops(messageOf(thrown));
      throw thrown;
    });
  }

  /** @returns true: that is how it stays */
  #fallBack(why: string): true {
    this.#tellOfStops(why);
    if (this.#options.wanted === 'target') throw unavailable(why);
    return true;
  }

  #tellOfStops(why: string): void {
    this.#logger.info({ why }, 'no probe can do without stops');
    for (const index of this.#options.plans.keys()) if (!this.#why.has(index)) this.#why.set(index, why);
  }
}
