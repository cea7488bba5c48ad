import type { HookFrame, ProbeCode } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { partOf, silent } from '../base/logger.js';
import type { EarlierRecords, StopObserver } from '../calls/index.js';
import { processCode, type ServedCode, servedAt, type TargetEngine } from '../inject/index.js';
import type { Batch, SignalStop } from '../rsp/index.js';
import type { StopEngine } from '../stop/index.js';
import { insideKernel } from '../target/index.js';
import type { ProbeFact } from '../trace/index.js';
import type { EnginesOptions } from './engines-options.js';
import type { Installed } from './installed.js';
import { Installer } from './installer.js';
import { ProbeChoices } from './probe-choices.js';
import { Results } from './results.js';
import { StopBudget } from './stop-budget.js';

/** The state of the engine without stops in one program. */
type State =
  /** Waiting for the first hit. `settled`: the program's page table is its last one. */
  | { readonly kind: 'waiting'; readonly settled: boolean }
  | { readonly kind: 'installed'; readonly installed: Installed; readonly stops: StopEngine }
  /** `behind`: its records are not all digested. */
  | { readonly kind: 'left'; readonly behind: Installed | undefined };

/** So many stops may wait for records before them. Then all are digested, so that memory stays bounded. */
const mostWaiting = 10_000;
const manyBreakpoints = 1000;

/**
 * Chooses an engine for every probe, and joins the two engines. The stop engine lets the guest run. Probes that can
 * do without stops get trampolines at the first hit. Then the program runs, and its memory is mapped as it will stay.
 */
export class Engines implements StopObserver, EarlierRecords {
  readonly #options: EnginesOptions;
  readonly #choices: ProbeChoices;
  readonly #installer: Installer;
  readonly results = new Results(() => this.#installed);
  readonly #budget: StopBudget;
  /** Beside records; since all of these were digested; and those that waited in the queue. */
  readonly #stops = { emitted: 0, waiting: 0, queued: 0 };
  #state: State;

  /** @throws RsptraceError `ENGINE_UNAVAILABLE` if the engine without stops is asked for and no probe can use it */
  constructor(options: EnginesOptions) {
    this.#options = options;
    const logger = partOf(options.logger ?? silent, 'engines');
    this.#budget = new StopBudget(options.isRepeatable);
    this.#choices = new ProbeChoices(options);
    this.#installer = new Installer(options, this.#choices, logger);
    for (const { name: probe, engine, why } of this.#choices.facts)
      logger.debug({ probe, engine, why }, 'engine chosen');
    this.#state = { kind: 'waiting', settled: !options.settles };
  }

  /** The program has reached the point from which its page table stays unchanged. */
  settle(): void {
    if (this.#state.kind === 'waiting') this.#state = { kind: 'waiting', settled: true };
  }

  /** It has, or there is no such point. */
  get isSettled(): boolean {
    return this.#state.kind !== 'waiting' || this.#state.settled;
  }

  /** Enough events: drained records that are not yet digested are dropped. */
  enough(): void {
    this.#known?.drained.enough();
  }

  /** The present choices: before the first hit the plan, after it the result. */
  get choices(): readonly ProbeFact[] {
    return this.#choices.facts;
  }

  /** Why no probe can do without stops in this target; undefined if some can, or nothing is known yet. */
  get refusal(): string | undefined {
    return this.#choices.refusal;
  }

  /** Probes without a breakpoint that may have none: those that are left out, or that wait for trampolines. */
  get withoutStops(): readonly Addr[] {
    const waiting = this.#options.plans.filter(({ notByStops }) => notByStops && !this.#installed);
    return [...this.leftOut, ...waiting.map(({ address }) => address)];
  }

  /** How often probes have stopped the target with others that do not. */
  get stopsBeside(): number {
    return this.#stops.emitted;
  }

  /** No probe has a trampoline, or will have one; or the recording has ended before the first one was possible. */
  get onlyStops(): boolean {
    return this.#choices.onlyStops || (this.#state.kind === 'left' && this.results.all.source === undefined);
  }

  /** It is too early for trampolines, or nobody has tried. */
  get isWaiting(): boolean {
    return this.#state.kind === 'waiting' && this.refusal === undefined;
  }

  /** It is too early, and another page table may change that. */
  get waitsForTable(): boolean {
    return this.isWaiting && !this.#installer.memory.isPending;
  }

  get isInstalled(): boolean {
    return this.#state.kind === 'installed';
  }

  /** Trampolines write records, or will: they read the time. */
  get writesRecords(): boolean {
    return this.refusal === undefined && this.#choices.plan.sites.some(({ counters }) => counters === 0);
  }

  /** Probes that need no breakpoint, because they have trampolines or are left out. */
  get unarmed(): readonly Addr[] {
    return [...(this.#installed?.addresses ?? []), ...this.leftOut];
  }

  /** Probes that are left out, because they would stop the target and no stop is allowed. */
  get leftOut(): readonly Addr[] {
    return this.choices.filter(({ engine }) => engine === 'none').map(({ address }) => address);
  }

  /** The original return address behind one that a trampoline has replaced. */
  hooked(returnAddress: bigint): HookFrame | undefined {
    return this.#installed?.target.hooked(returnAddress);
  }

  /**
   * At a hit: installs the trampolines.
   * @param inUserMode the program runs inside a kernel
   * @returns false if it is too early for that
   */
  async arrive(stops: StopEngine, onError: (thrown: unknown) => void, inUserMode = false): Promise<boolean> {
    const { arch, inProcess } = this.#options;
    const code = inProcess ? processCode(arch) : arch.probeCode;
    const state = this.#state;
    if (!code || this.#choices.plan.sites.length === 0) return true;
    if (inUserMode) {
      this.#installer.fallBack(insideKernel);
      return true;
    }
    switch (state.kind) {
      case 'waiting':
        return state.settled && this.#undisturbed(stops, () => this.#install(code, stops, onError));
      case 'installed':
        await state.installed.patchWaiting(stops);
        return state.installed.target.patches.waiting === 0;
      case 'left':
        return true;
    }
  }

  /**
   * The kernel has changed its page table, and the target stands right behind that. Trampolines are mapped there too.
   * @returns true if there was nothing to do
   * @throws RsptraceError `SCRATCH_UNUSABLE` if they cannot be
   */
  async followTable(): Promise<boolean> {
    return (await this.#installed?.followTable()) ?? true;
  }

  runs(): () => void {
    return this.#installed?.runs() ?? (() => {});
  }

  async handles(stop: SignalStop, resume: Batch): Promise<boolean> {
    return (await this.#installed?.handles(stop, resume)) ?? false;
  }

  /**
   * Reads the records before a stop. `emits`: the stop itself is an event, so every earlier record is flushed. What
   * is not at a probe's place has no turn in the queue: the events before it are emitted first.
   */
  async stopped(emits: boolean, at?: Addr): Promise<void> {
    if (this.#state.kind !== 'installed') return;
    const { installed, stops } = this.#state;
    if (emits) this.#stops.emitted++;
    if (at !== undefined && this.#options.wanted === 'auto') await this.#spend(at, stops);
    await installed.stopped(emits);
    this.#stops.waiting = this.areDigested ? 0 : this.#stops.waiting + 1;
    const hasTurn = at !== undefined && !this.#options.isRepeatable;
    if ((emits && !hasTurn) || this.#stops.waiting > mostWaiting) this.digestAll();
  }

  /** Reads every record before this stop, which no probe has brought. */
  async catchUp(): Promise<void> {
    await this.#installed?.stopped(true);
  }

  get areDigested(): boolean {
    return this.undigested === 0;
  }

  digestAll(): void {
    this.#known?.drained.digestAll();
  }

  /** Stops that were understood after the target had run on, because records were before them. */
  get stopsQueued(): number {
    return this.#stops.queued;
  }

  queue(handler: () => void): void {
    this.#stops.queued++;
    const known = this.#known;
    this.whenDigested(() => {
      if (!known?.drained.isEnough) handler();
    });
  }

  isOwnCode(pc: bigint): boolean {
    return this.#installed?.target.holds(pc) ?? false;
  }

  /** Whose trampoline lies there. */
  served(pc: bigint): ServedCode | undefined {
    return this.#known && servedAt(this.#known.placement.served, pc);
  }

  /** The stub does not let these probes stop the target: they are left out. */
  leaveOut(places: readonly Addr[], why: string): void {
    const off = this.#choices.leaveOut(places, why);
    if (off.length > 0) this.#options.leftOut?.(off);
  }

  /** Counts a stop. Probes that had too many are switched off here and now. */
  async #spend(at: Addr, stops: StopEngine): Promise<void> {
    const now = { hostMs: performance.now(), ranMs: stops.runningTime() / 1e6 };
    const name = this.#choices.nameAt(at);
    // Others cost what they cost: the user has asked for stops there.
    if (name === undefined ? stops.points.at(at)?.permanent : this.#choices.isAsked(at)) return;
    const spent = this.#budget.spend(name ?? at, now);
    if (spent.length === 0 || !this.#choices.someInject) return;
    await stops.points.awaitNoMore(spent.filter((one) => typeof one === 'bigint'));
    const off = this.#choices.switchOff(spent.filter((one) => typeof one === 'string'));
    if (off.length === 0) return;
    await stops.points.disarm(off.map(({ address }) => address));
    this.#options.leftOut?.(off);
  }

  /**
   * The process runs another program, or the machine was reset. Reads the old program's last records. The next hit
   * begins anew.
   * @param sameRam RAM stays, except for what is loaded
   * @returns addresses of probes that had trampolines
   */
  async restart(sameRam = false): Promise<readonly Addr[]> {
    const installed = this.#installed;
    this.#state = { kind: 'waiting', settled: !this.#options.settles };
    this.#choices.restart();
    this.#installer.memory.forget();
    if (!installed) return [];
    this.results.add(installed, await installed.end(sameRam));
    installed.target.drained.digestAll();
    this.results.digestedMs += installed.target.drained.digestedMs;
    return installed.addresses;
  }

  /**
   * The recording ends: reads what is left, for {@link digest}. If the target is still stopped, removes the patches.
   * @returns the number of missing records: not drained in time, or never committed by their writer
   */
  async leave(standing: boolean): Promise<number> {
    const installed = this.#installed;
    if (standing) await this.#installer.memory.giveUp();
    if (installed) this.results.add(installed, await (standing ? installed.leave() : installed.end()));
    this.#state = { kind: 'left', behind: installed };
    return this.results.missing;
  }

  /**
   * Digests drained records for about this many milliseconds.
   * @returns true while there is more
   */
  digest(budgetMs: number): boolean {
    return this.#known?.drained.digest(budgetMs) ?? false;
  }

  /** Calls `handler` when all that was drained until now is events: at once where nothing waits. */
  whenDigested(handler: () => void): void {
    if (this.#known) this.#known.drained.whenDigested(handler);
    else handler();
  }

  /** How long records were digested, in milliseconds. */
  get digestedMs(): number {
    return this.results.digestedMs + (this.#known?.drained.digestedMs ?? 0);
  }

  /** Drained records that were not digested yet. */
  get undigested(): number {
    return this.#known?.drained.undigested ?? 0;
  }

  get #installed(): Installed | undefined {
    return this.#state.kind === 'installed' ? this.#state.installed : undefined;
  }

  /** The same, or what was it until the recording ended. */
  get #known(): TargetEngine | undefined {
    return (this.#state.kind === 'left' ? this.#state.behind : this.#installed)?.target;
  }

  /** Many breakpoints of a process would make each write of a patch slow. */
  #undisturbed(stops: StopEngine, work: () => Promise<boolean>): Promise<boolean> {
    const { inProcess, session } = this.#options;
    return inProcess && session.breakpoints.length > manyBreakpoints ? stops.points.without(work) : work();
  }

  /** @returns false if it is too early in the program for that */
  async #install(code: ProbeCode, stops: StopEngine, onError: (thrown: unknown) => void): Promise<boolean> {
    const installed = await this.#installer.install(code, stops, this.results.all.time);
    if (installed === 'early') return false;
    if (!installed) return true;
    this.#state = { kind: 'installed', installed, stops };
    await installed.begin(stops, onError);
    return installed.target.patches.waiting === 0;
  }
}
