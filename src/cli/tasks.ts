import { performance } from 'node:perf_hooks';
import {
  copyCore,
  copyProcess,
  copyTarget,
  dumpView,
  type FoundTasks,
  runtimesCalled,
  type TargetCopy,
  type TaskView,
  tasksIn,
  taskView,
  type Understood,
  understandFutures,
  wantedLocks,
} from '../api/index.js';
import {
  FutureFields,
  type MemoryImage,
  openMemoryImage,
  type Region,
  type Runtime,
  runtimes,
  search,
} from '../async/tasks/index.js';
import { RsptraceError } from '../base/errors.js';
import { DebugInfo } from '../dwarf/index.js';
import { type ElfFile, ET } from '../elf/index.js';
import { isProcess, parseRemote } from '../rsp/index.js';
import { isMovedAtBoot, loadedElf, roomForCopy } from '../target/index.js';
import { jsonLine } from '../text/index.js';
import { ExitCode, note } from './failure.js';
import { createLogger } from './logging.js';
import { loadedThere, lookAt, programOf, type ReadProgram, readProgram } from './look-at.js';
import { sayWithoutWire } from './open-output.js';
import { debugFilesOf } from './options/common.js';
import type { TasksArguments } from './options/target.js';
import { loadPlugins } from './plugins.js';
import { blockedText, notesOf, type Shown, tasksJson, tasksText } from './tasks-report.js';
import { lineWidth } from './terminal.js';

/**
 * `rsptrace tasks --remote ADDR kernel.elf`, or `--pid PID`: every task and what it awaits. Gives the exit status.
 * Without an ELF it is the process's program.
 */
export async function showTasks(given: TasksArguments): Promise<number> {
  const { scan, base } = given;
  const { runtimes: own } = await loadPlugins(given.plugin);
  runtimesCalled(given.runtime, [...own, ...runtimes, search]);
  const read = await readProgram({ ...given, elf: programOf(given) });
  const { args, linked, logger } = read;
  if (args.core !== undefined) {
    sayWithoutWire(args);
    using image = await openMemoryImage(args.core, base, linked);
    const { program, view } = await viewOfCore(read, image, scan);
    return show(args, { program, view, own, stoodMs: undefined, knowsHeaps: true });
  }
  const found = { ...read, linked: await placed(read) };
  // Loaded at addresses of its own, it is read again; without debug info it is refused now.
  const isMovable = found.linked.type === ET.DYN && found.linked.loadBias === 0n;
  if (isMovable) DebugInfo.load(found.linked, { logger });
  const known = isMovable ? undefined : understandFutures(found.linked, logger);
  const { copy, elf, stoodMs } = await copied(found, known, scan);
  const program = elf === found.linked && known ? known : understandFutures(elf, logger);
  return show(args, { program, view: await taskView(program, copy), own, stoodMs, knowsHeaps: copy.knowsHeaps });
}

/** A kernel that its loader has moved is looked for first, so that it does not stand while its debug info is read. */
async function placed(read: ReadProgram<TasksArguments & { readonly elf: string }>): Promise<ElfFile> {
  const { args, linked } = read;
  const { remote } = args;
  // A process's program is where it is already.
  if (remote === undefined || linked.loadBias !== 0n || !isMovedAtBoot(linked)) return linked;
  // All of a recording of the wire comes through one connection.
  if (args['record-wire'] !== undefined || parseRemote(remote).kind === 'replay') return linked;
  return await lookAt(read, ({ session }) => loadedElf(session, linked));
}

/** A process's core has its threads; a dump of a machine is memory alone. */
async function viewOfCore(
  { args, linked, arch, logger }: ReadProgram,
  image: MemoryImage,
  scan: readonly Region[],
): Promise<{ readonly program: Understood; readonly view: TaskView }> {
  const taken = await copyCore(image, linked, { arch, scan, logger, ...debugFilesOf(args) });
  const program = understandFutures(taken?.elf ?? linked, logger);
  return { program, view: await (taken ? taskView(program, taken.copy) : dumpView(program, image, scan)) };
}

interface Copied {
  readonly copy: TargetCopy;
  /** As it is loaded. */
  readonly elf: ElfFile;
  readonly stoodMs: number;
}

/**
 * Copies what the look needs, and lets the target go on. `known`: undefined if the program's addresses are not known
 * before it is seen where it was loaded.
 */
async function copied(read: ReadProgram, known: Understood | undefined, scan: readonly Region[]): Promise<Copied> {
  const { args, linked, arch, logger } = read;
  const options = { arch, scan, room: roomForCopy(linked.path), logger, ...debugFilesOf(args) };
  const start = performance.now();
  const taken = await lookAt(read, async ({ session }) => {
    const elf = await loadedThere(session, read);
    if (isProcess(session.features)) return { copy: await copyProcess(session, elf, options), elf };
    const { debug } = known ?? { debug: DebugInfo.load(elf, { logger }) };
    return { copy: await copyTarget(session, { elf, debug }, options), elf };
  });
  return { ...taken, stoodMs: performance.now() - start };
}

interface Look {
  readonly program: Understood;
  readonly view: TaskView;
  /** Runtimes of plug-ins. */
  readonly own: readonly Runtime[];
  readonly stoodMs: number | undefined;
  readonly knowsHeaps: boolean;
}

async function show(args: TasksArguments, { program, view, own, stoodMs, knowsHeaps }: Look): Promise<number> {
  const { runtime } = args;
  const found: FoundTasks = await tasksIn(program, view, {
    runtimes: own,
    runtime,
    logger: createLogger(args.log),
  });
  if (found.searched === 0 && found.unread > 0) throw nothingRead(args);
  note(...notesOf(found));
  const fields = args.locals ? new FutureFields(program.debug, view.memory) : undefined;
  const shown: Shown = {
    wanted: await wantedLocks(program, view),
    elf: args.elf ?? '',
    found,
    fields,
    stoodMs,
    mayHaveHeap: !knowsHeaps && args.scan.length === 0,
    width: lineWidth(),
    isFull: args.full,
  };
  const text = args.blocked ? blockedText : tasksText;
  process.stdout.write(args.json ? jsonLine(await tasksJson(shown)) : await text(shown));
  const isFound = found.deadlocks.length > 0 || found.lost.length > 0;
  return args.findings === 'error' && isFound ? ExitCode.limitBroken : ExitCode.recorded;
}

/** For a dump of another program, or of other memory. */
function nothingRead({ core, elf }: TasksArguments): RsptraceError {
  const where = core === undefined ? 'the target' : core;
  return new RsptraceError('MEMORY_MISSING', `nothing of the memory that ${elf} writes to can be read in ${where}`, {
    hint:
      core === undefined ? 'is it the ELF that runs there?' : 'is it a dump of this program, with the right --base?',
  });
}
