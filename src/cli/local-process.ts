// A process of this machine under a gdbserver that rsptrace starts at the last moment and takes away.
import { existsSync, readlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import {
  abandonedServer,
  Gdbserver,
  type Subject,
  takenOutText,
  takeOverServer,
  unharmedStart,
  vectorDamage,
} from '../api/index.js';
import { type Architecture, architectureNamed } from '../arch/index.js';
import { messageOf, RsptraceError } from '../base/errors.js';
import { isFirstSaid } from '../base/kept-files.js';
import { entriesOf, statOf, textOf } from '../base/proc.js';
import { type TakenOut, takeOutOwnCode, takeOutTraps } from '../inject/index.js';
import type { Session } from '../rsp/index.js';
import { connect, letRun } from '../target/index.js';
import { type AtTarget, atTarget, type BeforeTarget, leavesServer } from './at-target.js';
import { note } from './failure.js';
import { endedBySignals } from './last-orders.js';
import { wireRecorder } from './open-output.js';

/** How long a program that was asked to end may take, in milliseconds. */
const endMs = 500;

/** How long gdbserver may take to answer for the first time, in milliseconds. */
const waitMs = 5000;

export interface OutputWish {
  /** Results go to stdout, so what the program writes there goes to stderr. With `--json` it always does. */
  readonly isStdoutOurs?: boolean | undefined;
}

interface UnderServer {
  readonly server: Gdbserver;
  /** What its user must know of this gdbserver. */
  readonly damage: string | undefined;
}

interface Under<T> extends UnderServer {
  readonly result: T;
}

/**
 * Starts gdbserver, connects, runs `body`, and waits until gdbserver has let go of the process. A program that was
 * started is ended if that fails.
 */
export async function underGdbserver<T>(
  subject: Subject,
  { args, logger, isStdoutOurs = args.json }: Pick<BeforeTarget, 'args' | 'logger'> & OutputWish,
  body: (target: AtTarget, under: UnderServer) => Promise<T>,
): Promise<Under<T>> {
  const { environment, warning: damage } =
    'pid' in subject
      ? { environment: undefined, warning: vectorDamage(tunablesOf(subject.pid)) }
      : unharmedStart(process.env);
  if (damage !== undefined && (args.json || isFirstSaid(damage))) logger.warn({}, damage);
  using recordWire = wireRecorder(args, logger);
  const begun: { server?: Gdbserver; left?: Promise<void> } = {};
  const open = async (): Promise<Session> => {
    if ('pid' in subject) await leaveAbandoned(subject.pid);
    const server = await Gdbserver.start(subject, {
      output: isStdoutOurs ? 2 : 'inherit',
      cleanUp: leavesServer,
      ...(environment && { env: environment }),
    });
    begun.server = server;
    const session = await connect(server.address, {
      ...{ logger, waitMs, timeoutMs: args.timeout, recordWire, standsSince: server.since },
    });
    const arch = architectureOf(session);
    if ('pid' in subject && arch) {
      await leaveForgotten(session, arch, subject.pid);
      begun.left = server.ended.then(() => leaveKilled(session, arch, server));
    }
    return session;
  };
  try {
    const after = 'pid' in subject ? undefined : 'its program was ended';
    const result = await atTarget(open, (target) => body(target, { damage, server: begun.server as Gdbserver }), {
      after,
    });
    const { server } = begun;
    if (server === undefined) throw new RsptraceError('GDBSERVER_FAILED', 'gdbserver was not started');
    await server.gone();
    return { result, server, damage };
  } catch (error) {
    if (begun.server !== undefined && 'command' in subject) await endProgram(begun.server, false);
    // Whatever it was doing has failed of that.
    throw (await begun.server?.wasKilled()) ? serverGone(subject) : error;
  } finally {
    begun.server?.[Symbol.dispose]();
    if (await begun.server?.wasKilled()) await begun.left;
  }
}

/** That a gdbserver of ours was ended from outside. */
export function serverGone(subject: Subject): RsptraceError {
  const hint =
    'pid' in subject
      ? `a trace ends there; if process ${subject.pid} runs on, another rsptrace can look at it`
      : 'how the program ended, and whether it has, nobody saw';
  return new RsptraceError('RUN_KILLED', 'gdbserver was ended from outside', { hint });
}

function architectureOf(session: Session): Architecture | undefined {
  return architectureNamed(session.target.architecture ?? '');
}

/** A gdbserver that was killed leaves its breakpoints in a process that runs on, and dies of the next one. */
async function leaveKilled(session: Session, { linux }: Architecture, server: Gdbserver): Promise<void> {
  if (!server.isAlive || !(await server.wasKilled())) return;
  const trap = linux?.forgottenTraps?.trap;
  const places = session.breakpoints.filter(({ type }) => type === 0).map(({ address }) => address);
  if (trap !== undefined) takeOutTraps(server.pid, places, trap);
  await leaveUnserved(server);
}

/** A process whose gdbserver was killed: another one takes out what is in its code. */
async function leaveUnserved({ pid }: Gdbserver): Promise<void> {
  try {
    using server = await Gdbserver.start({ pid }, { cleanUp: leavesServer });
    await using session = await connect(server.address, { waitMs, standsSince: server.since });
    const arch = architectureOf(session);
    if (arch === undefined) return;
    const taken = await takeOut(session, arch, pid);
    await session.detach();
    await server.gone();
    note(`its gdbserver was killed. ${takenOutText({ ...taken, pid })}`);
  } catch (thrown) {
    note(`its gdbserver was killed, and process ${pid} could not be left in order: ${messageOf(thrown)}`);
  }
}

/** A process that an rsptrace has traced which was killed, and whose gdbserver is there still. */
async function leaveAbandoned(pid: number): Promise<void> {
  const server = await abandonedServer(pid);
  const taken = server === undefined ? undefined : await takeOverServer(server);
  if (taken) note(`an earlier rsptrace was killed. ${takenOutText(taken)}`);
}

/** What an earlier rsptrace has left in the code of a process that nobody traced any more, and that stands now. */
async function leaveForgotten(session: Session, arch: Architecture, pid: number): Promise<void> {
  const taken = await takeOut(session, arch, pid);
  if (taken.patches.length > 0) note(`an earlier rsptrace was killed. ${takenOutText({ ...taken, pid })}`);
}

async function takeOut(session: Session, arch: Architecture, pid: number): Promise<TakenOut> {
  await arch.prepare();
  await letRun(session, arch);
  const taken = await takeOutOwnCode(session, arch, pid);
  await letRun(session, arch);
  return taken;
}

/** Undefined for a process that does not show it. */
function tunablesOf(pid: number): string | undefined {
  const variables = textOf(`/proc/${pid}/environ`).split('\0');
  return variables.find((variable) => variable.startsWith('GLIBC_TUNABLES='));
}

/** The program is ended now. One that does not end by itself is killed, also while it is traced. */
export function endSoon(server: Gdbserver): void {
  server.kill('SIGTERM');
  setTimeout(() => server.kill('SIGKILL'), endMs);
}

/** After the recording: a program that `runsOn` does so until Ctrl-C. */
export async function endProgram(server: Gdbserver, runsOn: boolean): Promise<void> {
  if (!runsOn) {
    server.kill('SIGTERM');
    if (!(await server.processEnded(endMs))) server.kill('SIGKILL');
    await server.processEnded(endMs);
    return;
  }
  if (!server.isAlive) return;
  note('recording ended, the program runs on; Ctrl-C ends it');
  using _handled = endedBySignals((signal) => server.kill(signal));
  await server.processEnded();
}

/** @throws RsptraceError `USAGE`, `ATTACH_NO_PROCESS` */
export function processNamed(text: string): number {
  const pid = Number(text);
  if (!/^[1-9]\d{0,9}$/.test(text)) {
    throw new RsptraceError('USAGE', `'${text}' is no process number`, {
      hint: '`pgrep -a NAME` shows the numbers of those that run',
    });
  }
  return livingThread(pid);
}

const saidOf = new Set<number>();

/**
 * What is attached to: the process, or its last thread where the main thread has ended before. Such a process gdbserver
 * does not take as a whole. Threads that it does not trace would die of breakpoints.
 */
function livingThread(pid: number): number {
  if (statOf(pid)[0] !== 'Z') return pid;
  const tasks = `${pid}/task`;
  const living = entriesOf(`/proc/${tasks}`).filter((task) => /^[^ZX]/.test(statOf(`${tasks}/${task}`)[0] ?? ''));
  const [thread] = living;
  if (living.length === 1 && thread !== undefined) {
    if (!saidOf.has(pid)) note(`the main thread of process ${pid} has ended: its last thread, ${thread}, is traced`);
    saidOf.add(pid);
    return Number(thread);
  }
  const rest =
    living.length === 0
      ? 'it has no thread any more'
      : `gdbserver takes only one of its ${living.length} other threads`;
  throw new RsptraceError('GDBSERVER_FAILED', `the main thread of process ${pid} has ended: ${rest}`, {
    hint: 'a probe would end the threads that nobody traces; trace such a program from its start, with rsptrace run',
  });
}

/** The program that a process runs: the file itself, also if it was removed, or is a container's. */
export function executableOf(pid: number): string {
  const link = `/proc/${pid}/exe`;
  try {
    const path = readlinkSync(link);
    return path.endsWith(' (deleted)') || !existsSync(path) ? link : path;
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT') {
      throw new RsptraceError('ATTACH_NO_PROCESS', `there is no process ${pid}`, {
        hint: '`pgrep -a NAME` shows the numbers of those that run',
      });
    }
    throw new RsptraceError('GDBSERVER_FAILED', `the program of process ${pid} cannot be read: ${code}`, {
      hint:
        process.getuid?.() === 0
          ? 'this root may trace no process of others: a container needs CAP_SYS_PTRACE, as by --cap-add SYS_PTRACE'
          : 'tracing it needs the same user, or root',
    });
  }
}

/** A program as a shell finds it: a name without a slash that is no file here is looked for in PATH. */
export function programNamed(name: string): string {
  if (name.includes('/') || existsSync(name)) return name;
  const places = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return places.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? name;
}
