import type { HookFrame, ProbeCode } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import { isRefusal } from '../base/refusal.js';
import type { StopObserver } from '../calls/index.js';
import {
  cleanChild,
  clearSlack,
  type Drain,
  defined,
  LiveDrain,
  lastPlaces,
  loadedLibrary,
  MovedStops,
  movedStopsRoom,
  type Piece,
  type Placement,
  ProcessUnwinders,
  processScale,
  type RecordCounter,
  type RecordTime,
  readLastRecords,
  remembered,
  type Site,
  StoppedDrain,
  TargetEngine,
  type ThreadWords,
  TrampolineOverhead,
  unwinderRoom,
  type WaitLimit,
  withThreadWords,
} from '../inject/index.js';
import type { PlannedStop } from '../probes/index.js';
import { retry } from '../rsp/index.js';
import { closeScratch, currentAddressSpace, type Region, type Scratch, slackOf, unusable } from '../scratch/index.js';
import type { StopEngine } from '../stop/index.js';
import { changesItsCode, PacketRam, runIntoKernel } from '../target/index.js';
import { unavailable } from './engine-choice.js';
import type { EnginesOptions, InstallationLog } from './engines-options.js';
import type { ProbeChoices } from './probe-choices.js';
import { siteFacts } from './recovered-records.js';

/** How often guard pages of memory that the kernel may take are looked at, in milliseconds. */
const guardsMs = 50;
const ramIsKnown =
  'the kernel has mapped the RAM that was kept from it, as if it had not read how much there is: the recording ends if the kernel uses it. `rsptrace run` gives the machine more RAM instead';
/** The longest of the moments in which open calls of a machine may end, in milliseconds; 63 ms in all. */
const longestWait = 32;
/** And where it matters little: 31 ms in all. A debugger that comes later sees the stack of no hook then. */
const briefWait = 16;

/** The most RAM that is searched by packets, in bytes. The target stands for up to 20 ms a MiB. */
const mostByPackets = 256 << 20;

export interface InstallRequest {
  readonly options: EnginesOptions;
  readonly choices: ProbeChoices;
  readonly code: ProbeCode;
  readonly scratch: Scratch;
  /** For a process: how its threads are told apart. */
  readonly threads: ThreadWords | undefined;
  readonly stops: StopEngine;
  /** The overhead that was subtracted for programs that the target ran before. */
  readonly earlierTime: TrampolineOverhead | undefined;
}

/** Trampolines in the target, in one program that it runs: reads their records, and removes them again. */
export class Installed implements StopObserver {
  readonly scratch: Scratch;
  readonly #options: EnginesOptions;
  readonly #choices: ProbeChoices;
  readonly #placed: Placed;
  #drain: Drain | undefined;
  #guards: NodeJS.Timeout | undefined;
  #exiting = false;
  #tailLost = false;
  #trampolinesStay = false;
  #areNeeded = true;
  /** The kernel maps the memory as RAM of its own. */
  #isKnown = false;

  private constructor({ options, choices, scratch }: InstallRequest, placed: Placed) {
    this.#options = options;
    this.#choices = choices;
    this.scratch = scratch;
    this.#placed = placed;
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
    const { session, elf, nanosPerInstruction, isCounted = false, logger = silent } = this.#options;
    const target = this.#target;
    const { shared } = this.scratch;
    await this.#disarm(stops, target.sites);
    if (target.breakpoint !== undefined) await stops.pause(target.breakpoint);
    if (!shared || shared.endsWithTarget) await this.#waitForEnd(stops);
    if (!shared) {
      // Not if a clock counts instructions, because two runs must be alike. Not for Linux, because a stop in user
      // mode does not see the kernel's memory.
      const interrupts =
        nanosPerInstruction === undefined && !changesItsCode(elf) && (await StoppedDrain.gains(session));
      this.#drain = new StoppedDrain(target, session, interrupts, onError);
    } else {
      // The end of QEMU is told by the wire.
      const onFailure = (thrown: unknown): void => (isClosed(thrown) ? undefined : onError(thrown));
      this.#drain = new LiveDrain(target, onFailure, isCounted);
    }
    this.#watchGuards(onError);
    await this.#placed.unwinder?.watch((place, then) => stops.points.intercept([place], then), onError);
    const { waiting } = target;
    logger.info({ probes: target.sites.length, waiting, scratch: this.scratch.source }, 'trampolines are installed');
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

  get #target(): TargetEngine {
    return this.#placed.target;
  }

  /** The trampolines' overhead, if it is known and no probe stops the target. */
  get time(): TrampolineOverhead | undefined {
    return this.#placed.time;
  }

  /** Functions that are to be patched at a later hit. */
  get waiting(): number {
    return this.#target.waiting;
  }

  get records(): number {
    return this.#target.records;
  }

  get ringFull(): number {
    return this.#target.ringFull;
  }

  /** How long the target's harts waited for room, all together, in nanoseconds. */
  get ringWaitedNs(): number {
    return Math.round(this.#target.waitedTicks * (this.#placed.counter?.nanosPerTick ?? 0));
  }

  /** Calls were open at the end that return through trampolines. */
  get trampolinesStay(): boolean {
    return this.#trampolinesStay;
  }

  /** Those calls need the trampolines: they could not be made to return past them. */
  get trampolinesNeeded(): boolean {
    return this.#trampolinesStay && this.#areNeeded;
  }

  /** The target has ended, and with it the records in a ring that only a stop could read. */
  get tailLost(): boolean {
    return this.#tailLost;
  }

  /** The addresses of the probes that have trampolines. */
  get addresses(): readonly Addr[] {
    return this.#target.sites.map(({ plan: { address } }) => address);
  }

  enough(): void {
    this.#target.enough();
  }

  /** Whether code of a trampoline lies there. */
  holds(pc: bigint): boolean {
    return this.#target.holds(pc);
  }

  hooked(returnAddress: bigint): HookFrame | undefined {
    return this.#target.hooked(returnAddress);
  }

  runs(): () => void {
    const { counter } = this.#placed;
    if (counter?.stands) reportClock(this.#options.log?.(), counter);
    return this.#drain?.runs() ?? (() => {});
  }

  async handles(...args: Parameters<StopObserver['handles']>): Promise<boolean> {
    return (await this.#drain?.handles(...args)) ?? false;
  }

  async stopped(tells: boolean): Promise<void> {
    await this.#drain?.stopped(tells);
  }

  /** At a later hit, because an interrupt had come in the middle of what a jump replaces. */
  async patchWaiting(stops: StopEngine): Promise<void> {
    const target = this.#target;
    const sites = await target.patchWaiting((piece) => stops.points.areIn(piece));
    noteChanged(target, this.#choices);
    await this.#disarm(stops, sites);
    const { logger = silent } = this.#options;
    if (sites.length > 0) logger.info({ probes: sites.length, waiting: target.waiting }, 'more functions are patched');
  }

  /** See {@link Engines.followTable}. */
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

  get digestedMs(): number {
    return this.#target.digestedMs;
  }

  get heldMs(): number {
    return this.#target.heldMs;
  }

  /** Drained records that were not digested yet. */
  get undigested(): number {
    return this.#target.undigested;
  }

  whenDigested(tell: () => void): void {
    this.#target.whenDigested(tell);
  }

  digestAll(): void {
    this.#target.digestAll();
  }

  /** No more events are wanted. */
  get isEnough(): boolean {
    return this.#target.isEnough;
  }

  /** See {@link TargetEngine.digest}. */
  digest(budgetMs: number): boolean {
    return this.#target.digest(budgetMs);
  }

  /**
   * The program has ended: reads its last records. They wait for {@link digest}.
   * @param sameRam RAM stays as it is, except for what is loaded
   * @returns missing records
   */
  async end(sameRam = false): Promise<number> {
    this.#stopReading();
    this.#options.session.children.beforeGoing = undefined;
    try {
      return await this.#readOut();
    } finally {
      await closeScratch(this.scratch);
      const { slack, target } = this.#placed;
      if (sameRam && slack) await clearSlack(this.#options.session, slack, target.placement.code);
    }
  }

  /**
   * The recording ends, the target is stopped: reads what is left, and removes the patches.
   * What was read waits for {@link digest}.
   * @returns missing records (not drained in time, or never committed)
   */
  async leave(): Promise<number> {
    this.#stopReading();
    const { session, arch, logger = silent } = this.#options;
    try {
      const [site] = this.#target.sites;
      await retry(session, () => runIntoKernel(session, arch, site?.plan.address, logger));
      if (session.state.kind !== 'idle') return await this.#readOut();
      await this.#target.leave().finally(() => this.#placed.moved?.remove());
      // It may have ended while its harts ran out of patches.
      if (session.state.kind !== 'idle') return await this.#readOut();
      await this.#reportCounts(true);
      const dropped = await retry(session, () => this.#putAway(logger));
      return dropped + this.#target.finish();
    } finally {
      await closeScratch(this.scratch);
    }
  }

  /** Reads the last records of a program that has ended. Returns how many are missing. */
  async #readOut(): Promise<number> {
    const target = this.#target;
    const { shared } = this.scratch;
    // First of all, because the memory of a QEMU that ends is there for a moment only.
    const isRead =
      shared !== undefined &&
      (await whileThere(async () => {
        while (target.drainLive({ all: true, last: true }));
      }));
    let dropped = 0;
    const isThere =
      isRead &&
      (await whileThere(async () => {
        dropped = await target.dropped();
        await this.#reportCounts(true);
      }));
    this.#tailLost = !isRead && !this.#exiting;
    if (!isThere) await this.#reportCounts(false);
    return dropped + target.finish();
  }

  /**
   * What is left to do when the patches are removed; may be done twice. Returns how many records the target has
   * dropped.
   */
  async #putAway(logger: Logger): Promise<number> {
    const { source: scratch } = this.scratch;
    const dropped = await this.#target.dropped();
    const touched = await this.scratch.verifyGuards();
    if (touched !== undefined) logger.warn({ scratch }, touched);
    const process = this.scratch.calls && this.#options.arch.probeCode?.process;
    const isIdle = await this.#isIdle(process !== undefined);
    const stands = this.#options.session.state.kind === 'idle';
    // What a process maps for us is its own again, or is unmapped.
    if (!process && stands) await this.#target.erase(isIdle);
    if (isIdle) {
      await release(this.#placed.unwinder, this.scratch);
      return dropped;
    }
    this.#trampolinesStay = true;
    if (!process) this.#areNeeded = !(await this.#leadPast());
    logger.info({ scratch, needed: this.#areNeeded }, 'calls are still open: their trampolines stay');
    if (process && stands && (await this.#target.mute())) await this.scratch.releaseData?.();
    return dropped;
  }

  /** False if calls of a machine may still return through trampolines. */
  async #leadPast(): Promise<boolean> {
    const { session, elf, staysHere } = this.#options;
    if (session.state.kind !== 'idle') return true;
    const ram = this.#options.ram ?? (await this.#ramByPackets());
    return ram !== undefined && (await this.#target.leadPast(elf, ram, staysHere?.()));
  }

  /** Only where a kernel's next page table may not have the trampolines, because it takes long. */
  async #ramByPackets(): Promise<PacketRam | undefined> {
    const { session, logger = silent } = this.#options;
    const ram = this.scratch.follow && (await PacketRam.find(session, mostByPackets));
    if (ram) {
      const mebibytes = Math.ceil(ram.size / 2 ** 20);
      logger.warn({ mebibytes }, 'calls are open: the RAM is searched for their return addresses, by packets');
    }
    return ram;
  }

  /** Whether no code of ours can run any more. Open calls get time to end where it matters that they have. */
  async #isIdle(inProcess: boolean): Promise<boolean> {
    if (inProcess) return await this.#target.becomesIdle();
    const { mustEnd, staysHere } = this.#options;
    const isIdle = await this.#target.idle();
    // A kernel that turns to another page table meanwhile would have no trampolines in it: nobody would see that.
    const mustStand = staysHere?.() || this.scratch.follow !== undefined;
    if (isIdle || (mustStand && !mustEnd?.())) return isIdle;
    // Nobody answers a stop any more.
    await this.#options.session.clearBreakpoints();
    return await this.#target.becomesIdle(mustEnd?.() ? longestWait : briefWait);
  }

  async #reportCounts(reachable: boolean): Promise<void> {
    const all = await retry(this.#options.session, () => this.#target.counted(reachable));
    for (const { probe, words } of all) this.#options.counted(probe, words);
  }

  /** Removes the breakpoints from functions that have trampolines now, and from those that may have neither. */
  async #disarm(stops: StopEngine, sites: readonly Site[]): Promise<void> {
    stops.points.leaveToSteps(this.#target.ends);
    const leftOut = this.#choices.facts.filter(({ engine }) => engine === 'none').map(({ address }) => address);
    await stops.disarm([...sites.map(({ plan: { address } }) => address), ...leftOut]);
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
    const { session, elf } = this.#options;
    const library =
      defined(elf, 'exit') === undefined && (await loadedLibrary(session, this.scratch, /\/(libc[.-]|ld-musl)/));
    const exit = defined(library || elf, 'exit');
    if (exit !== undefined)
      await stops.pause(exit, () => {
        this.#exiting = true;
      });
  }
}

/** What an installation has put into the target. */
interface Placed {
  readonly target: TargetEngine;
  readonly time: TrampolineOverhead | undefined;
  readonly counter: RecordCounter | undefined;
  readonly unwinder?: ProcessUnwinders | undefined;
  readonly moved?: MovedStops | undefined;
  /** Behind the program's text. */
  readonly slack: Region | undefined;
}

/** What is placed beside the trampolines. */
interface Aside {
  unwinder?: ProcessUnwinders | undefined;
  moved?: MovedStops | undefined;
}

/** Patches the functions. If that fails, the memory is freed. */
async function placeTrampolines(request: InstallRequest): Promise<Placed> {
  const { options, scratch } = request;
  const { session } = options;
  const placed: Aside = {};
  try {
    return await patchFunctions(request, placed);
  } catch (thrown) {
    if (session.state.kind === 'idle' && scratch.calls) await release(placed.unwinder, scratch);
    await closeScratch(scratch);
    throw thrown;
  }
}

async function patchFunctions(request: InstallRequest, placed: Aside): Promise<Placed> {
  const { options, choices, code, scratch, stops } = request;
  const { session, arch, elf, logger = silent } = options;
  const process = options.inProcess && code.process;
  const times = await timesOf(request);
  const { sites } = choices.plan;
  const rare = process ? [] : rareStops(request);
  const reserved = process ? unwinderRoom(process, sites.length) : movedStopsRoom(rare.length);
  const slack = await slackOf({ session, arch, elf });
  const target = new TargetEngine(engineOptions(request, { times, slack, reserved }));
  reportInstalled(request, times);
  for (const [index, why] of target.refused) choices.refuse(index, why);
  times?.own?.learn(code, target.placement);
  if (process) {
    placed.unwinder = new ProcessUnwinders({ session, elf, scratch, code: process });
    const room = addOffset(scratch.code.address, scratch.code.size - reserved);
    await placed.unwinder.register(room, target.placement.hooks);
  }
  await target.install((piece) => stops.points.areIn(piece));
  noteChanged(target, choices);
  placed.moved = rare.length > 0 ? await moveStops(rare, request, target.placement) : undefined;
  const [first] = sites;
  if (target.sites.length + target.waiting === 0) throw unavailable(first && choices.why(first.index));
  if (process) session.children.beforeGoing = (child) => cleanForked(options, child, target, code, logger);
  return { ...placed, target, time: times?.own, counter: times?.counter, slack };
}

/** With less memory for code, trampolines need all of it. */
const smallCode = 64 << 10;

/** Places outside of trampolines where the target is to stop, most of them never reached. */
function rareStops({ options, scratch, stops: { points } }: InstallRequest): readonly PlannedStop[] {
  if (scratch.code.size < smallCode) return [];
  const ends = options.ends.filter(({ place }) => points.isPause(place));
  const isReadAtEnd = scratch.shared === undefined || scratch.shared.endsWithTarget;
  return isReadAtEnd ? [...ends, ...options.planStops(lastPlaces(options))] : ends;
}

async function moveStops(
  rare: readonly PlannedStop[],
  { options, code, scratch, stops: { points } }: InstallRequest,
  placement: Placement,
): Promise<MovedStops> {
  const { session, arch, elf, logger = silent } = options;
  const length = movedStopsRoom(rare.length);
  const room = { address: addOffset(scratch.code.address, scratch.code.size - length), length };
  const holdsStop = (piece: Piece): boolean => points.areIn(piece);
  const moved = await MovedStops.move(rare, { session, arch, code, elf, room, holdsStop, placement, logger });
  const copies = rare.flatMap(({ place }) => {
    const copy = points.isPause(place) ? moved.copyAt(place) : undefined;
    return copy === undefined ? [] : [[place, copy] as const];
  });
  await points.movePauses(new Map(copies));
  return moved;
}

/** What is needed to understand the records once this process is gone. */
function reportInstalled({ options, choices, threads }: InstallRequest, times: Times | undefined): void {
  const log = options.log?.();
  const { sites, slotShift } = choices.plan;
  log?.installed({
    slotShift,
    harts: options.harts,
    threads: threads && { offset: threads.offset, free: threads.free, process: threads.process },
    hasOwnTime: times?.own !== undefined,
    sites: sites.map(siteFacts),
  });
  if (times && !times.counter.stands) reportClock(log, times.counter);
}

function reportClock(log: InstallationLog | undefined, { origin, nanosPerTick }: RecordCounter): void {
  log?.clock({ ...origin(), nanosPerTick });
}

interface Prepared {
  readonly times: Times | undefined;
  readonly slack: Region | undefined;
  /** Bytes of code for the process's unwinder. */
  readonly reserved: number;
}

function engineOptions(
  { options, choices, code, scratch, threads }: InstallRequest,
  { times, slack, reserved }: Prepared,
): ConstructorParameters<typeof TargetEngine>[0] {
  const { session, arch, elf, tracer, inProcess, harts, logger } = options;
  const { sites, slotShift } = choices.plan;
  const isOneHart = harts === 1 && !inProcess;
  const outerWords = threads?.free;
  return {
    session,
    arch,
    code,
    sites: threads ? withThreadWords(sites, threads) : sites,
    slotShift,
    scratch,
    reserved,
    near: slack,
    tracer,
    time: times?.record ?? ((ticks) => ticks),
    hartNumber:
      inProcess && threads ? remembered((word) => inProcess.threadNumber(threads.id(word))) : options.hartNumber,
    isOneHart,
    nests: isOneHart || outerWords !== undefined,
    outerWords,
    chained: changesItsCode(elf),
    log: options.log?.()?.raw,
    isRepeatable: options.isRepeatable ?? false,
    ...(inProcess && times && { waits: waitLimit(times.counter, options.isLossless) }),
    ...(logger ? { logger } : {}),
  };
}

function waitLimit({ nanosPerTick }: RecordCounter, isLossless = false): WaitLimit {
  return { ticksPerMs: 1e6 / nanosPerTick, isLossless };
}

interface Times {
  readonly record: RecordTime;
  readonly counter: RecordCounter;
  /** The trampolines' overhead, if it is known. */
  readonly own: TrampolineOverhead | undefined;
}

/** Undefined where nothing is timed. Without a counter, probes that need none are served all the same. */
async function timesOf(request: InstallRequest): Promise<Times | undefined> {
  const { choices } = request;
  const { sites } = choices.plan;
  if (sites.every(({ counters }) => counters > 0)) return undefined;
  try {
    return await recordTime(request);
  } catch (thrown) {
    const isUnknown = thrown instanceof RsptraceError && thrown.code === 'COUNTER_UNKNOWN';
    if (!isUnknown || sites.every(({ counters }) => counters === 0)) throw thrown;
    choices.refuseRecords(thrown.message);
    return undefined;
  }
}

async function recordTime({ options, choices, scratch, earlierTime }: InstallRequest): Promise<Times> {
  const { session, arch, inProcess, nanosPerInstruction, wanted } = options;
  const clock = arch.probeCode?.process?.clock;
  const processTime = inProcess && clock && processScale(session, clock, scratch, inProcess.traceTime);
  const counter = await (processTime || options.counter(scratch));
  if (nanosPerInstruction === undefined || (wanted !== 'target' && !choices.allInject))
    return { record: counter.time, counter, own: undefined };
  const own = new TrampolineOverhead(nanosPerInstruction, earlierTime?.facts);
  return { record: own.over(counter.time), counter, own };
}

function noteChanged(target: TargetEngine, choices: ProbeChoices): void {
  for (const { index } of target.changed) choices.refuse(index, "its code in the target is not the ELF's any more");
}

async function cleanForked(
  { session }: EnginesOptions,
  child: string,
  target: TargetEngine,
  code: ProbeCode,
  logger: Logger,
): Promise<void> {
  if (await cleanChild(session, child, target.placement, code)) return;
  logger.warn({ child }, 'the child of a fork may still run trampolines');
}

/** False if the shared memory has ended with its target. */
async function whileThere(read: () => Promise<void>): Promise<boolean> {
  try {
    await read();
    return true;
  } catch (thrown) {
    if (isClosed(thrown)) return false;
    throw thrown;
  }
}

function isClosed(thrown: unknown): boolean {
  return thrown instanceof RsptraceError && thrown.code === 'SCRATCH_CLOSED';
}

async function release(unwinder: ProcessUnwinders | undefined, scratch: Scratch): Promise<void> {
  await unwinder?.remove();
  await scratch.release();
}
