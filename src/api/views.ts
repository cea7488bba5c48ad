import type { Architecture } from '../arch/index.js';
import { type FutureSet, findFutures } from '../async/futures/index.js';
import {
  type AwaitNode,
  findTasks,
  isFreed,
  type MemoryImage,
  type Region,
  type Runtime,
  runtimes,
  search,
  stuckTasks,
  type Tasks,
  takeSnapshot,
  writableRegions,
} from '../async/tasks/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, partOf } from '../base/logger.js';
import { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import type { FoundPolls } from '../probes/index.js';
import type { RecordOptions } from '../record/index.js';
import type { Hart, Session } from '../rsp/index.js';
import { architectureFor, type Libraries, loadedLibraries } from '../target/index.js';
import {
  type CodePlace,
  codePlace,
  type HartStack,
  hartStack,
  type OtherProgram,
  OtherPrograms,
} from '../target/stacks/index.js';
import {
  type Frame,
  type FrameVariable,
  FrameVariables,
  type RunningPoll,
  runningPolls,
  SourceFrames,
  type StackOptions,
  Stacks,
} from '../target/unwind/index.js';
import { constantsOf, copyTarget, type TargetCopy } from './task-copy.js';

/** A program as it is loaded, for a look at a target that stands. */
export interface LookedAt {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  /** Undefined for a program without. */
  readonly debug: DebugInfo | undefined;
  readonly debugDirs?: readonly string[] | undefined;
  readonly logger?: Logger | undefined;
  /** Further programs of a machine. */
  readonly programs?: readonly OtherProgram[];
}

/** One hart, and who runs there. */
export interface HartBacktrace extends Pick<HartStack, 'stack' | 'firmware' | 'other' | 'program'> {
  readonly hart: Hart;
  /** Where they were asked for: of each frame that has some. */
  readonly variables: ReadonlyMap<Frame, readonly FrameVariable[]>;
  /** The pc is not known: the stack begins at the call that returned last, or whose function runs. */
  readonly beginsAt?: 'last-call';
}

export interface BacktraceOptions extends StackOptions {
  /** Read the variables of each frame. */
  readonly locals?: boolean;
}

/** Every hart's stack, the target standing. */
export async function stacksAt(
  session: Session,
  { elf, arch, debug, debugDirs, logger, programs = [] }: LookedAt,
  { locals = false, ...options }: BacktraceOptions = {},
): Promise<{ readonly harts: readonly HartBacktrace[]; readonly libraries: Libraries }> {
  const libraries = await loadedLibraries(session, elf, { debugDirs, logger });
  const stacks = new Stacks(elf, arch, debug, libraries.loaded);
  const others = OtherPrograms.of({ arch, others: programs });
  const debugOf = new Map([{ elf, debug }, ...programs].map((program) => [program.elf, program.debug]));
  const harts: HartBacktrace[] = [];
  for (const hart of await session.harts()) {
    const found = await hartStack(session, hart.id, arch, stacks, { ...options, others });
    const { stack, firmware, other, memory, program } = found;
    if (logger) logStack(partOf(logger, 'unwind'), hart.id, stack);
    const described = locals ? debugOf.get(program) : undefined;
    const variables = await variablesOf(stack, described && new FrameVariables(described, memory));
    harts.push({ hart, stack, firmware, other, program, variables });
  }
  return { harts, libraries };
}

export async function variablesOf(
  { frames }: HartBacktrace['stack'],
  reader: FrameVariables | undefined,
): Promise<HartBacktrace['variables']> {
  const variables = new Map<Frame, readonly FrameVariable[]>();
  if (reader) for (const frame of frames) variables.set(frame, await reader.of(frame));
  return variables;
}

/** By what each frame was left, and why the walk ended. */
function logStack(logger: Logger, hart: string, { frames, end }: HartBacktrace['stack']): void {
  logger.debug({ hart, frames: frames.length, end: end.reason }, 'a stack was walked');
  if (!logger.isLevelEnabled('trace')) return;
  for (const { level, pc, unwinder, confidence } of frames)
    logger.trace({ hart, level, pc: hex(pc), unwinder, confidence }, 'frame');
}

/** Its debug info, where it has some: lines alone are enough. */
export function linesOf(elf: ElfFile, logger?: Logger): DebugInfo | undefined {
  return elf.has('.debug_info') ? DebugInfo.load(elf, { logger, linesSuffice: true }) : undefined;
}

/** A program whose Futures are known. */
export interface Understood {
  readonly elf: ElfFile;
  readonly debug: DebugInfo;
  readonly futures: FutureSet;
}

export function understandFutures(elf: ElfFile, logger: Logger): Understood {
  const debug = DebugInfo.load(elf, { logger });
  return { elf, debug, futures: findFutures(debug) };
}

/** What shows a target's tasks, as it stood. */
export interface TaskView extends Pick<TargetCopy, 'memory' | 'heaps' | 'stacks' | 'dead' | 'knowsHeaps'> {
  /** Each hart's open polls, the innermost first. */
  readonly polls: readonly (readonly RunningPoll[])[];
  /** Each hart's frames, the innermost first. */
  readonly frames: readonly (readonly Frame[])[];
  /** The numbers of a machine's harts whose frames these are. */
  readonly harts: readonly number[];
}

/** Looks at what was copied; the target may run meanwhile. */
export async function taskView(program: Understood, copy: TargetCopy): Promise<TaskView> {
  const { memory, heaps, stacks, dead, knowsHeaps } = copy;
  const polls: RunningPoll[][] = [];
  const walked = await copy.walk(program);
  const frames = walked.map((stack) => stack.frames);
  const harts = walked.flatMap(({ hart }) => hart ?? []);
  for (const each of frames) polls.push(await runningPolls(each, program.debug, program.futures, memory));
  return { memory, heaps, stacks, dead, knowsHeaps, polls, frames, harts };
}

/** The same of a dump: which harts polled what, it does not say. */
export async function dumpView({ elf }: Understood, image: MemoryImage, scan: readonly Region[]): Promise<TaskView> {
  const constants = constantsOf(elf, image);
  const regions = [...writableRegions(elf), ...scan];
  const { pointerBits } = architectureFor(elf);
  const memory = await takeSnapshot(image, regions, { beyond: constants, heaps: image.regions, pointerBits });
  return { memory, heaps: [], stacks: [], dead: [], knowsHeaps: true, polls: [], frames: [], harts: [] };
}

export interface TaskOptions {
  /** Memory that may hold tasks besides what is found. */
  readonly scan?: readonly Region[];
  /** Runtimes of one's own, asked before those that are known. */
  readonly runtimes?: readonly Runtime[];
  /** Asks this one alone. */
  readonly runtime?: string;
  readonly logger?: Logger;
}

export interface FoundTasks extends Tasks {
  /** A hart polls it just now. */
  isRunning(node: AwaitNode): boolean;
  /** Of a task that is polled by a thread which waits in the kernel: in what, called from where. */
  blockedIn(task: AwaitNode): CodePlace | undefined;
}

/**
 * The tasks in some memory.
 * @throws RsptraceError `RUNTIME_UNKNOWN`
 */
export async function tasksIn(
  program: Understood,
  whole: TaskView,
  { runtimes: own = [], runtime, logger }: TaskOptions = {},
): Promise<FoundTasks> {
  const { debug, futures } = program;
  const { polls, ...view } = whole;
  const blocked = blockedThreads(program, whole);
  const blockedIn = (node: AwaitNode): CodePlace | undefined =>
    blocked.get(key(node.address, node.typeName)) ?? node.awaits.map(blockedIn).find((place) => place !== undefined);
  const isBlocked = (task: AwaitNode): boolean => blockedIn(task) !== undefined;
  const running = polls.flatMap((stack) => stack.slice(-1));
  const asked = runtimesCalled(runtime, [...own, ...runtimes, search]);
  const values = new FrameVariables(debug, view.memory);
  const variables = (frame: Frame): Promise<readonly FrameVariable[]> => values.of(frame);
  const { memory, heaps } = view;
  const freed = (block: Addr, bytes: number): Promise<boolean> => isFreed(memory, heaps, block, bytes);
  const context = { debug, futures, running, variables, isFreed: freed, isBlocked, logger, ...view };
  const found = await findTasks(context, asked);
  const now = new Set(polls.flat().map(({ future, address }) => key(address, future.instance)));
  return { ...found, isRunning: ({ address, typeName }) => now.has(key(address, typeName)), blockedIn };
}

/** Of each Future that is polled by a thread which waits in the kernel, where that stands; by {@link key}. */
function blockedThreads({ elf, debug }: Understood, { polls, frames }: TaskView): ReadonlyMap<string, CodePlace> {
  const { instruction } = architectureFor(elf).linux?.systemCalls ?? {};
  const sources = new SourceFrames(elf, debug);
  const found = new Map<string, CodePlace>();
  for (const [index, stack] of frames.entries()) {
    const [innermost] = stack;
    const polled = polls[index] ?? [];
    if (innermost === undefined || polled.length === 0 || !isBehind(innermost, instruction)) continue;
    const place = codePlace(stack, sources);
    for (const { future, address } of polled) found.set(key(address, future.instance), place);
  }
  return found;
}

/** A thread stands behind the instruction by which it went into the kernel, as long as it is there. */
function isBehind({ pc, image }: Frame, instruction: Uint8Array | undefined): boolean {
  if (instruction === undefined) return false;
  const bytes = image?.elf.bytesAt(addOffset(pc, -instruction.length), instruction.length);
  return bytes !== undefined && Buffer.compare(bytes, instruction) === 0;
}

/**
 * Those of a name; all without one.
 * @throws RsptraceError `RUNTIME_UNKNOWN`
 */
export function runtimesCalled(name: string | undefined, known: readonly Runtime[]): readonly Runtime[] {
  if (name === undefined) return known;
  const found = known.filter((each) => each.name === name);
  if (found.length > 0) return found;
  throw new RsptraceError('RUNTIME_UNKNOWN', `no runtime is called '${name}'`, {
    hint: `there are ${known.map((each) => each.name).join(', ')}`,
  });
}

function key(address: Addr, instance: string): string {
  return `${address}:${instance}`;
}

/**
 * For findings that only memory shows, deadlocks and lost wakes: copies what a look at tasks needs while the target
 * stands. `runtimes`: those of plug-ins.
 */
export function findStuck(
  logger: Logger,
  runtimes: readonly Runtime[],
  debugFiles: { readonly debugDirs?: readonly string[] | undefined } = {},
): NonNullable<RecordOptions['look']> {
  return async (session, { elf, arch, debug, kinds }) => {
    const polls = kinds.find(({ kind }) => kind.name === 'poll')?.found as FoundPolls | undefined;
    if (!debug || !polls) return async () => [];
    const copy = await copyTarget(session, { elf, debug }, { arch, logger, ...debugFiles });
    return async () => {
      const program = { elf, debug, futures: polls.futures };
      return stuckTasks(await tasksIn(program, await taskView(program, copy), { runtimes, logger }));
    };
  };
}
