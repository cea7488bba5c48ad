import type { Architecture } from '../arch/index.js';
import { type Addr, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { type HartStack, hartStack, isSeen } from '../engines/index.js';
import { type Libraries, loadedLibraries } from '../facts/index.js';
import { type FutureSet, findFutures } from '../futures/index.js';
import type { Hart, Session } from '../rsp/index.js';
import {
  type AwaitNode,
  deadStack,
  findTasks,
  type Region,
  type Runtime,
  type Tasks,
  writableRegions,
} from '../tasks/index.js';
import {
  type Frame,
  type FrameVariable,
  FrameVariables,
  type RunningPoll,
  runningPolls,
  type StackOptions,
  Stacks,
} from '../unwind/index.js';

/** A program as it is loaded, for a look at a target that stands. */
export interface LookedAt {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  /** Undefined for a program without. */
  readonly debug: DebugInfo | undefined;
  readonly debugDirs?: readonly string[] | undefined;
  readonly logger?: Logger | undefined;
}

/** One hart, and who runs there. */
export interface HartBacktrace extends Pick<HartStack, 'stack' | 'firmware' | 'other'> {
  readonly hart: Hart;
  /** Where they were asked for: of each frame that has some. */
  readonly variables: ReadonlyMap<Frame, readonly FrameVariable[]>;
}

export interface BacktraceOptions extends StackOptions {
  /** Read the variables of each frame. */
  readonly locals?: boolean;
}

/** Every hart's stack, the target standing. */
export async function stacksAt(
  session: Session,
  { elf, arch, debug, debugDirs, logger }: LookedAt,
  { locals = false, ...options }: BacktraceOptions = {},
): Promise<{ readonly harts: readonly HartBacktrace[]; readonly libraries: Libraries }> {
  const libraries = await loadedLibraries(session, elf, librariesOf(debugDirs, logger));
  const stacks = new Stacks(elf, arch, debug, libraries.loaded);
  const harts: HartBacktrace[] = [];
  for (const hart of await session.harts()) {
    const { stack, firmware, other, memory } = await hartStack(session, hart.id, arch, stacks, options);
    const variables = new Map<Frame, readonly FrameVariable[]>();
    const reader = locals && debug ? new FrameVariables(debug, memory) : undefined;
    if (reader) for (const frame of stack.frames) variables.set(frame, await reader.of(frame));
    harts.push({ hart, stack, firmware, other, variables });
  }
  return { harts, libraries };
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

/** What tells the tasks of a target that stands. */
export interface TaskView {
  readonly memory: MemoryReader;
  /** Parts of stacks that are not in use. */
  readonly dead: readonly Region[];
  /** Each hart's open polls, the innermost first. */
  readonly polls: readonly (readonly RunningPoll[])[];
}

/**
 * Looks at every hart.
 * @throws RsptraceError `PROGRAM_NOT_SEEN`
 */
export async function taskView(
  session: Session,
  { elf, debug, futures }: Understood,
  { arch, debugDirs, logger }: Pick<LookedAt, 'arch' | 'debugDirs' | 'logger'>,
): Promise<TaskView> {
  const libraries = await loadedLibraries(session, elf, librariesOf(debugDirs, logger));
  const stacks = new Stacks(elf, arch, debug, libraries.loaded);
  const dead: Region[] = [];
  const polls: RunningPoll[][] = [];
  const harts: HartStack[] = [];
  for (const { id } of await session.harts()) {
    const hart = await hartStack(session, id, arch, stacks);
    harts.push(hart);
    if (hart.other) continue;
    const { stack, registers, memory } = hart;
    const stackPointer = registers.register(arch.sp);
    if (stackPointer !== undefined) dead.push(...deadStack(elf, addr(stackPointer)));
    polls.push(await runningPolls(stack.frames, debug, futures, memory));
  }
  return { memory: await memoryOf(elf, harts), dead, polls };
}

/**
 * The program's memory, as a hart sees it that runs the program, or another program in an address space that has this one too.
 * @throws RsptraceError `PROGRAM_NOT_SEEN`
 */
async function memoryOf(elf: ElfFile, harts: readonly HartStack[]): Promise<MemoryReader> {
  for (const { memory, other } of harts) if (!other || (await isSeen(elf, memory))) return memory;
  const [first] = harts;
  const mode = first?.other?.privilege === undefined ? '' : ` in ${first.other.privilege} mode`;
  throw new RsptraceError(
    'PROGRAM_NOT_SEEN',
    `no hart runs ${elf.path} or has it in its address space: the first stands at ${hex(first?.other?.pc ?? 0n)}${mode}, in another program`,
    { hint: 'look again, or stop it where the program runs; a build of another day is another program too' },
  );
}

export interface TaskOptions {
  /** Memory that may hold tasks besides the program's own. */
  readonly scan?: readonly Region[];
  /** Asked for the tasks before memory is searched for them. */
  readonly runtimes?: readonly Runtime[];
}

export interface FoundTasks extends Tasks {
  /** A hart polls it just now. */
  isRunning(node: AwaitNode): boolean;
}

/** The tasks in some memory. */
export async function tasksIn(
  { elf, debug, futures }: Understood,
  { memory, dead, polls }: TaskView,
  { scan = [], runtimes = [] }: TaskOptions = {},
): Promise<FoundTasks> {
  const regions = [...writableRegions(elf), ...scan];
  const running = polls.flatMap((stack) => stack.slice(-1));
  const found = await findTasks({ debug, futures, memory, regions, dead, running }, runtimes);
  const now = new Set(polls.flat().map(({ future, address }) => key(address, future.instance)));
  return { ...found, isRunning: ({ address, typeName }) => now.has(key(address, typeName)) };
}

function key(address: Addr, instance: string): string {
  return `${address}:${instance}`;
}

function librariesOf(debugDirs: readonly string[] | undefined, logger: Logger | undefined) {
  return { ...(debugDirs ? { debugDirs } : {}), ...(logger ? { logger } : {}) };
}
