import type { Addr } from '../base/addr.js';
import { isRefusal } from '../base/errors.js';
import { silent } from '../base/logger.js';
import type { StopObserver } from '../calls/index.js';
import {
  clearSlack,
  DigestPace,
  type Drain,
  exitOf,
  LiveDrain,
  lastPlaces,
  readLastRecords,
  restTimes,
  type Site,
  StoppedDrain,
  type TargetEngine,
  type TrampolineOverhead,
} from '../inject/index.js';
import { retry } from '../rsp/index.js';
import { closeScratch, type Scratch, unusable } from '../scratch/index.js';
import type { StopEngine } from '../stop/index.js';
import { changesItsCode, currentAddressSpace, finishOwnCall, runIntoKernel } from '../target/index.js';
import type { EnginesOptions } from './engines-options.js';
import { isClosed, Leaving } from './leaving.js';
import { type InstallRequest, noteChanged, type Placed, placeTrampolines, reportClock } from './placing.js';
import type { ProbeChoices } from './probe-choices.js';

/** How often guard pages of memory that the kernel may take are looked at, in milliseconds. */
const guardsMs = 50;
const ramIsKnown =
  'the kernel has mapped the RAM that was kept from it, as if it had not read how much there is: the recording ends if the kernel uses it. `rsptrace run` gives the machine more RAM instead';
/** Trampolines in the target, in one program that it runs: reads their records, and removes them again. */
export class Installed implements StopObserver {
  readonly scratch: Scratch;
  readonly #options: EnginesOptions;
  readonly #choices: ProbeChoices;
  readonly #placed: Placed;
  readonly leaving: Leaving;
  #drain: Drain | undefined;
  #guards: NodeJS.Timeout | undefined;
  #exiting = false;
  /** The kernel maps the memory as RAM of its own. */
  #isKnown = false;

  private constructor({ options, choices, scratch }: InstallRequest, placed: Placed) {
    this.#options = options;
    this.#choices = choices;
    this.scratch = scratch;
    this.#placed = placed;
    this.leaving = new Leaving(options, placed, scratch);
  }

  /**
   * At a hit: writes trampolines and patches the functions.
   * @throws RsptraceError `SCRATCH_*`, `PATCH_REFUSED`, `ENGINE_UNAVAILABLE`; then nothing is patched, and the memory
   * is freed
   */
  static async install(request: InstallRequest): Promise<Installed> {
    return new Installed(request, await placeTrampolines(request));
  }

  /**
   * Removes the breakpoints of patched functions, and drains the ring from now on. `onError` gets the errors
   * meanwhile.
   */
  async begin(stops: StopEngine, onError: (thrown: unknown) => void): Promise<void> {
    const { session, elf, nanosPerInstruction, isCounted = false, isShown, logger = silent } = this.#options;
    const target = this.target;
    const { shared } = this.scratch;
    await this.#disarm(stops, target.patches.planted);
    if (target.breakpoint !== undefined) await stops.points.pause(target.breakpoint);
    if (!shared || shared.endsWithTarget) await this.#waitForEnd(stops);
    if (!shared) {
      // Not if a clock counts instructions, because two runs must be alike. Not for Linux, because a stop in user
      // mode does not see the kernel's memory.
      const interrupts =
        nanosPerInstruction === undefined && !changesItsCode(elf) && (await session.stub()).name === 'qemu-system';
      this.#drain = new StoppedDrain(target, session, interrupts, onError);
    } else {
      // The end of QEMU is seen at the wire.
      const onFailure = (thrown: unknown): void => (isClosed(thrown) ? undefined : onError(thrown));
      this.#drain = new LiveDrain(
        target,
        onFailure,
        isCounted,
        new DigestPace(restTimes[isShown ? 'shown' : 'recorded']),
      );
    }
    this.#watchGuards(onError);
    await this.#placed.unwinder?.watch((place, then) => stops.points.intercept([place], then), onError);
    const { waiting } = target.patches;
    logger.info(
      { probes: target.patches.planted.length, waiting, scratch: this.scratch.source },
      'trampolines are installed',
    );
  }

  /** Ends the recording if the kernel comes near memory that it was told is not there. */
  #watchGuards(onError: (thrown: unknown) => void): void {
    const { scratch } = this;
    if (!scratch.isWatched || scratch.shared === undefined) return;
    this.#guards = setInterval(() => {
      scratch.verifyGuards().then(
        (touched) => {
          if (touched === undefined || this.#guards === undefined) return;
          clearInterval(this.#guards);
          onError(unusable(`${scratch.source} cannot be used: ${touched}`));
        },
        // The target has ended.
        () => clearInterval(this.#guards),
      );
    }, guardsMs);
  }

  #stopReading(): void {
    this.#drain?.stop();
    clearInterval(this.#guards);
    this.#guards = undefined;
  }

  get target(): TargetEngine {
    return this.#placed.target;
  }

  /** The trampolines' overhead, if it is known and no probe stops the target. */
  get time(): TrampolineOverhead | undefined {
    return this.#placed.time;
  }

  /** How long the target's harts waited for room, all together, in nanoseconds. */
  get ringWaitedNs(): number {
    return Math.round(this.target.waitedTicks * (this.#placed.counter?.nanosPerTick ?? 0));
  }

  get addresses(): readonly Addr[] {
    return this.target.patches.planted.map(({ plan: { address } }) => address);
  }

  runs(): () => void {
    const { counter } = this.#placed;
    if (counter?.stands) reportClock(this.#options.log?.(), counter);
    return this.#drain?.runs() ?? (() => {});
  }

  async handles(...args: Parameters<StopObserver['handles']>): Promise<boolean> {
    return (await this.#drain?.handles(...args)) ?? false;
  }

  async stopped(emits: boolean): Promise<void> {
    await this.#drain?.stopped(emits);
  }

  /** At a later hit, because an interrupt had come in the middle of what a jump replaces. */
  async patchWaiting(stops: StopEngine): Promise<void> {
    const target = this.target;
    const sites = await target.patches.plant((piece) => stops.points.areIn(piece));
    noteChanged(target, this.#choices);
    await this.#disarm(stops, sites);
    const { logger = silent } = this.#options;
    if (sites.length > 0)
      logger.info({ probes: sites.length, waiting: target.patches.waiting }, 'more functions are patched');
  }

  async followTable(): Promise<boolean> {
    const { session, arch, logger = silent } = this.#options;
    const space = await currentAddressSpace(session, arch);
    if (isRefusal(space)) return true;
    const found = (await this.scratch.follow?.(space)) ?? { entered: false };
    if (isRefusal(found)) {
      throw unusable(`the kernel has turned to a page table that trampolines cannot be mapped in: ${found.refused}`);
    }
    if (found.isKnown && !this.#isKnown) {
      this.#isKnown = true;
      logger.warn({}, ramIsKnown);
    }
    if (found.entered) logger.info({}, 'the kernel has changed its page table: trampolines are mapped there too');
    return !found.entered;
  }

  /**
   * The program has ended: reads its last records. They wait to be digested.
   * @param sameRam RAM stays as it is, except for what is loaded
   * @returns missing records
   */
  async end(sameRam = false): Promise<number> {
    this.#stopReading();
    this.#options.session.children.beforeGoing = undefined;
    try {
      return await this.leaving.readOut(this.#exiting);
    } finally {
      await closeScratch(this.scratch);
      if (sameRam) await this.#clearSlack();
    }
  }

  /** No code of ours can run any more. */
  async #clearSlack(): Promise<void> {
    const { slack, target } = this.#placed;
    if (slack) await clearSlack(this.#options.session, slack, target.placement.code);
  }

  /**
   * The recording ends, the target is stopped: reads what is left, and removes the patches.
   * What was read waits to be digested.
   * @returns missing records (not drained in time, or never committed)
   */
  async leave(): Promise<number> {
    this.#stopReading();
    const { session, arch, logger = silent } = this.#options;
    const { state } = session;
    // Nothing of the old program is there any more.
    if (state.kind === 'idle' && state.stop.kind === 'signal' && state.stop.reason === 'exec') return this.end();
    try {
      // While its child, if it has just forked, can be given its own code.
      await finishOwnCall(session);
      const [site] = this.target.patches.planted;
      await retry(session, () => runIntoKernel(session, arch, site?.plan.address, logger));
      if (session.state.kind !== 'idle') return await this.leaving.readOut(this.#exiting);
      // Nobody answers a stop any more, and without breakpoints the code is put back past the stub.
      if (this.#options.letRun) await session.clearBreakpoints();
      await this.target.leave().finally(() => this.#placed.moved?.remove());
      // It may have ended while its harts ran out of patches.
      if (session.state.kind !== 'idle') return await this.leaving.readOut(this.#exiting);
      await this.leaving.reportCounts(true);
      const dropped = await retry(session, () => this.leaving.putAway(logger));
      if (session.state.kind === 'idle' && !this.leaving.trampolinesNeeded) await this.#clearSlack();
      return dropped + this.target.finish();
    } finally {
      session.children.beforeGoing = undefined;
      await closeScratch(this.scratch);
    }
  }

  /** Removes the breakpoints from functions that have trampolines now, and from those that may have neither. */
  async #disarm(stops: StopEngine, sites: readonly Site[]): Promise<void> {
    stops.points.leaveToSteps(this.target.patches.pieces);
    const leftOut = this.#choices.facts.filter(({ engine }) => engine === 'none').map(({ address }) => address);
    await stops.points.disarm([...sites.map(({ plan: { address } }) => address), ...leftOut]);
  }

  /** The ring is read at stops only, or ends with the target: a stop where that ends itself. */
  async #waitForEnd(stops: StopEngine): Promise<void> {
    if (this.#options.inProcess) return this.#pauseAtExit(stops);
    const { target, moved } = this.#placed;
    await readLastRecords(lastPlaces(this.#options), {
      ...{ logger: silent, ...this.#options, stops },
      passedBefore: (address) => moved?.copyAt(address) ?? target.passedBefore(address),
      drain: () => target.drainStopped(),
      onEnd: () => {
        this.#exiting = true;
      },
    });
  }

  async #pauseAtExit(stops: StopEngine): Promise<void> {
    if (!this.scratch.calls) return;
    const exit = await exitOf(this.#options.session, this.scratch, this.#options.elf);
    if (exit !== undefined)
      await stops.points.pause(exit, () => {
        this.#exiting = true;
      });
  }
}
