// Writes trampolines into the target: memory, code, patches, and what stands next to them.
import type { ProbeCode } from '../arch/index.js';
import { addOffset } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import {
  type AddedSteps,
  addedSteps,
  bareExits,
  cleanChild,
  lastPlaces,
  MovedStops,
  movedStopsRoom,
  type Piece,
  type Placement,
  ProcessUnwinders,
  processScale,
  type RecordCounter,
  type RecordTime,
  remembered,
  TargetEngine,
  type ThreadWords,
  TrampolineOverhead,
  unwinderRoom,
  type WaitLimit,
  withThreadWords,
} from '../inject/index.js';
import type { PlannedStop } from '../probes/index.js';
import { closeScratch, enterOtherTables, type Region, type Scratch, slackOf } from '../scratch/index.js';
import type { StopEngine } from '../stop/index.js';
import { changesItsCode, meanwhile } from '../target/index.js';
import { unavailable } from './engine-choice.js';
import type { EnginesOptions, InstallationLog } from './engines-options.js';
import type { ProbeChoices } from './probe-choices.js';
import { codeFacts, siteFacts } from './recovered-records.js';

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

/** What an installation has put into the target. */
export interface Placed {
  readonly target: TargetEngine;
  readonly time: TrampolineOverhead | undefined;
  readonly counter: RecordCounter | undefined;
  readonly unwinder?: ProcessUnwinders | undefined;
  readonly moved?: MovedStops | undefined;
  /** Behind the program's text. */
  readonly slack: Region | undefined;
}

/** What is placed next to the trampolines. */
interface Aside {
  unwinder?: ProcessUnwinders | undefined;
  moved?: MovedStops | undefined;
}

/** Patches the functions. If that fails, the memory is freed. */
export async function placeTrampolines(request: InstallRequest): Promise<Placed> {
  const { options, scratch } = request;
  const { session } = options;
  const placed: Aside = {};
  try {
    return await patchFunctions(request, placed);
  } catch (thrown) {
    if (session.state.kind === 'idle' && scratch.calls) {
      await placed.unwinder?.remove();
      await scratch.release();
    }
    await closeScratch(scratch);
    throw thrown;
  }
}

async function patchFunctions(request: InstallRequest, placed: Aside): Promise<Placed> {
  const { options, choices, code, scratch, stops } = request;
  const { session, arch, elf, logger = silent } = options;
  const process = options.inProcess && code.process;
  await options.letRun?.();
  const times = await timesOf(request);
  await options.letRun?.();
  const hidden = options.harts > 1 ? await enterOtherTables(scratch, { ...options, logger }) : undefined;
  if (hidden) throw unavailable(`another hart's page table cannot map trampolines: ${hidden.refused}`);
  const { sites } = choices.plan;
  const rare = process ? [] : rareStops(request);
  const reserved = process ? unwinderRoom(process, sites.length) : movedStopsRoom(rare.length);
  const slack = await slackOf({ session, arch, elf });
  const target = await meanwhile(
    options.letRun,
    () => new TargetEngine(engineOptions(request, { times, slack, reserved })),
  );
  const added = times?.own && addedSteps(code, target.placement);
  reportInstalled(request, target.placement, times, added);
  for (const [index, why] of target.refused) choices.refuse(index, why);
  if (added) times?.own?.learn(code, sites, added);
  await target.write(options.letRun);
  if (process) placed.unwinder = new ProcessUnwinders({ session, elf, scratch, code: process, pc: arch.pc });
  await placed.unwinder?.readFiles(options.letRun);
  await options.letRun?.();
  // From here on it stands: a library that came meanwhile would bring an unwinder that knows of no trampolines.
  if (process && placed.unwinder) {
    const room = addOffset(scratch.code.address, scratch.code.size - reserved);
    await placed.unwinder.register(room, target.placement.hooks);
  }
  await target.patches.plant((piece) => stops.points.areIn(piece));
  noteChanged(target, choices);
  const [first] = sites;
  if (target.patches.planted.length + target.patches.waiting === 0)
    throw unavailable(first && choices.why(first.index));
  placed.moved = rare.length > 0 ? await moveStops(rare, request, target.placement) : undefined;
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
function reportInstalled(
  { options, choices, threads }: InstallRequest,
  { served }: Placement,
  times: Times | undefined,
  added: readonly AddedSteps[] | undefined,
): void {
  const log = options.log?.();
  const { sites, slotShift } = choices.plan;
  log?.installed({
    slotShift,
    harts: options.harts,
    threads: threads && { offset: threads.offset, free: threads.free, process: threads.process },
    ownTime: added && times?.own && { nanosPerInstruction: times.own.nanosPerInstruction, added },
    sites: sites.map(siteFacts),
    code: served.map(codeFacts),
  });
  if (times && !times.counter.stands) reportClock(log, times.counter);
}

export function reportClock(log: InstallationLog | undefined, counter: RecordCounter): void {
  const { origin, nanosPerTick, behindStops } = counter;
  log?.clock({ ...origin(), nanosPerTick, behindStops });
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
  const { elf, inProcess, harts } = options;
  const { sites, slotShift } = choices.plan;
  const isOneHart = harts === 1 && !inProcess;
  const outerWords = threads?.free;
  return {
    ...options,
    code,
    sites: threads ? withThreadWords(sites, threads) : sites,
    slotShift,
    scratch,
    reserved,
    near: slack,
    time: times?.record ?? ((ticks) => ticks),
    hartNumber:
      inProcess && threads ? remembered((word) => inProcess.threadNumber(threads.id(word))) : options.hartNumber,
    isOneHart,
    nests: isOneHart || outerWords !== undefined,
    outerWords,
    chained: changesItsCode(elf),
    log: options.log?.()?.raw,
    waits: inProcess && times && waitLimit(times.counter, options.isLossless),
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

export function noteChanged(target: TargetEngine, choices: ProbeChoices): void {
  for (const { index } of target.patches.changed)
    choices.refuse(index, "its code in the target is not the ELF's any more");
}

async function cleanForked(
  { session }: EnginesOptions,
  child: string,
  target: TargetEngine,
  code: ProbeCode,
  logger: Logger,
): Promise<void> {
  if (await cleanChild(session, child, target.patches, bareExits(target.placement, code))) return;
  logger.warn({ child }, 'the child of a fork may still run trampolines');
}
