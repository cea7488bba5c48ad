import { type FoundTasks, type TaskView, tasksIn, taskView, type Understood, understandFutures } from '../api/index.js';
import type { Architecture } from '../arch/index.js';
import { type Addr, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { plural } from '../base/plural.js';
import { jsonLine, textLines } from '../base/visible.js';
import type { ElfFile } from '../elf/index.js';
import { architectureFor, connect, loadedElf, verifyArchitecture } from '../facts/index.js';
import type { Session } from '../rsp/index.js';
import { type AwaitNode, FutureFields, type FutureLocal, openMemoryImage, type Region } from '../tasks/index.js';
import { formatValue, valueJson } from '../values/index.js';
import { atTarget } from './at-target.js';
import { showConsole } from './console-output.js';
import { ExitCode } from './failure.js';
import { createLogger } from './logging.js';
import { openElf } from './open-elf.js';
import { type CommonArguments, debugFilesOf, wireRecorder } from './options.js';
import { loadPlugins } from './plugins.js';

export interface TasksArguments extends CommonArguments {
  readonly elf: string;
  readonly remote: string | undefined;
  readonly core: string | undefined;
  readonly base: string | undefined;
  readonly scan: readonly string[];
  readonly locals: boolean;
  readonly plugin: readonly string[];
}

/** `rsptrace tasks --remote ADDR kernel.elf`: every task and what it awaits. Gives the exit status. */
export async function showTasks(args: TasksArguments): Promise<number> {
  const logger = createLogger(args.log);
  const scan = args.scan.map(parseRegion);
  const base = args.base === undefined ? undefined : parseAddress(args.base, '--base');
  const linked = await openElf(args, logger);
  const known = understandFutures(linked, logger);
  const { runtimes } = await loadPlugins(args.plugin);
  const look: Look = async (program, view) => {
    const found = await tasksIn(program, view, { scan, runtimes });
    if (found.searched === 0 && found.unread > 0) throw nothingRead(args);
    const fields = args.locals ? new FutureFields(program.debug, view.memory) : undefined;
    if (found.unread > 0) {
      const all = mebibytes(found.searched + found.unread);
      process.stderr.write(
        `rsptrace: ${mebibytes(found.unread)} of ${all} could not be read: tasks that lie there are missing\n`,
      );
    }
    process.stdout.write(args.json ? await asJson(args, found, fields) : await asText(found, fields));
  };
  if (args.core !== undefined) {
    using image = await openMemoryImage(args.core, base);
    await look(known, { memory: image, dead: [], polls: [] });
    return ExitCode.recorded;
  }
  const arch = architectureFor(linked);
  using wire = wireRecorder(args, logger);
  const open = (): Promise<Session> =>
    connect(args.remote as string, {
      logger,
      timeoutMs: args.timeout,
      expectedArchitecture: arch.name,
      onConsole: showConsole,
      recordWire: wire,
    });
  return await atTarget(open, ({ session }) => lookAtTarget(session, args, { linked, arch, known, look, logger }));
}

interface Linked {
  readonly linked: ElfFile;
  readonly arch: Architecture;
  readonly known: Understood;
  readonly look: Look;
  readonly logger: Logger;
}

/** Prints the tasks that a view shows. */
type Look = (program: Understood, view: TaskView) => Promise<void>;

async function lookAtTarget(
  session: Session,
  args: TasksArguments,
  { linked, arch, known, look, logger }: Linked,
): Promise<number> {
  verifyArchitecture(session, arch);
  const loaded = await loadedElf(session, linked);
  const program = loaded === linked ? known : understandFutures(loaded, logger);
  await arch.prepare();
  await look(program, await taskView(session, program, { arch, logger, ...debugFilesOf(args) }));
  return ExitCode.recorded;
}

/** For a dump of another program, or of other memory. */
function nothingRead({ core, elf }: TasksArguments): RsptraceError {
  const where = core === undefined ? 'the target' : core;
  return new RsptraceError('MEMORY_MISSING', `nothing of the memory that ${elf} writes to can be read in ${where}`, {
    hint:
      core === undefined ? 'is it the ELF that runs there?' : 'is it a dump of this program, with the right --base?',
  });
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

async function asJson(args: TasksArguments, found: FoundTasks, fields: FutureFields | undefined): Promise<string> {
  const node = async (each: AwaitNode): Promise<object> => {
    const locals = await fields?.of(each);
    return {
      future: each.future?.future ?? each.typeName,
      instance: each.typeName,
      kind: each.future?.kind ?? null,
      address: hex(each.address),
      path: each.path,
      state: each.state?.name ?? null,
      file: each.state?.file ?? each.future?.file ?? null,
      line: each.state?.line ?? each.future?.line ?? null,
      ...(found.isRunning(each) ? { running: true } : {}),
      ...(each.maybe ? { maybe: true } : {}),
      ...(each.cut ? { cut: each.cut } : {}),
      ...(locals ? { locals: locals.map(({ name, value }) => ({ name, value: valueJson(value) })) } : {}),
      awaits: await Promise.all(each.awaits.map(node)),
    };
  };
  const tasks = await Promise.all(found.tasks.map(node));
  const { runtime, searched, unread } = found;
  return jsonLine({ version: 1, program: args.elf, runtime, searched, unread, tasks });
}

async function asText(found: FoundTasks, fields: FutureFields | undefined): Promise<string> {
  if (found.tasks.length === 0) {
    const searched = `${mebibytes(found.searched)} searched`;
    return `no task was found (${searched}); a heap outside of the ELF's own memory is searched with --scan START,SIZE\n`;
  }
  const lines: string[] = [];
  const show = async (node: AwaitNode, lead: string, inner: string): Promise<void> => {
    lines.push(`${lead}${nodeText(node)}${found.isRunning(node) ? '  (being polled)' : ''}`);
    const locals = (await fields?.of(node)) ?? [];
    const below = node.awaits.length > 0 ? '│ ' : '  ';
    for (const local of locals) lines.push(`${inner}${below}  ${localText(local)}`);
    for (const [i, child] of node.awaits.entries()) {
      const isLast = i === node.awaits.length - 1;
      await show(child, `${inner}${isLast ? '└─ ' : '├─ '}`, `${inner}${isLast ? '   ' : '│  '}`);
    }
  };
  for (const task of found.tasks) await show(task, '', '');
  return textLines([...lines, plural(found.tasks.length, 'task')]);
}

/** `labkern::work::level3  Suspend1 at /labkern/src/work.rs:50  @0x8020a0c0`. */
function nodeText({ future, typeName, state, address, path, maybe, cut }: AwaitNode): string {
  const branch = path === '' || path === '__awaitee' ? '' : `${path}: `;
  const place = state?.file === undefined ? '' : ` at ${state.file}:${state.line ?? '?'}`;
  const at = state === undefined ? '' : `  ${state.name}${place}`;
  const notes = `${maybe ? '  (may have been moved)' : ''}${cut === undefined ? '' : `  (${cut})`}`;
  return `${branch}${future?.future ?? typeName}${at}  @${hex(address)}${notes}`;
}

function localText({ name, value }: FutureLocal): string {
  return `${name} = ${formatValue(value)}`;
}

function parseRegion(text: string): Region {
  const [start, size, ...rest] = text.split(',');
  const length = Number(size);
  if (start === undefined || rest.length > 0 || !Number.isSafeInteger(length) || length <= 0) {
    throw new RsptraceError('USAGE', `'${text}' is not START,SIZE`, { hint: 'write --scan 0x80400000,0x100000' });
  }
  return { start: parseAddress(start, '--scan'), length };
}

function parseAddress(text: string, option: string): Addr {
  if (!/^(0x[0-9a-f]{1,16}|\d{1,19})$/i.test(text)) {
    throw new RsptraceError('USAGE', `${option} takes an address, not '${text}'`, { hint: 'write 0x80000000' });
  }
  return addr(BigInt(text));
}
