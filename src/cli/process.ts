// Recordings of a process of this machine, under a gdbserver that rsptrace starts at the last moment and takes away.
import { existsSync, readlinkSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { Gdbserver, type Subject, vectorDamage } from '../api/index.js';
import { RsptraceError } from '../base/errors.js';
import { type GuestExit, GuestWatch } from '../check/index.js';
import type { ElfFile } from '../elf/index.js';
import { connect, placeAtStart, placeInProcess } from '../facts/index.js';
import type { Session } from '../rsp/index.js';
import { onEvents, tee } from '../trace/index.js';
import { type AtTarget, atTarget, type StubOptions } from './at-target.js';
import { guestLimits, refuseMachineOptions } from './guest-options.js';
import type { RecordingArguments } from './options.js';
import {
  type Guest,
  type Prepared,
  type Recorded,
  recordSession,
  report,
  type SessionOptions,
  stopText,
  withRecording,
} from './recording.js';
import type { RunArguments } from './run.js';
import { wireRecorder } from './wire-file.js';

export interface AttachArguments extends Omit<RecordingArguments, 'elf'> {
  readonly pid: string;
  readonly elf: string | undefined;
}

/** How long a program that was asked to end may take, in milliseconds. */
const endMs = 3000;
/** How long gdbserver may take to answer for the first time, in milliseconds. */
const waitMs = 5000;

/** `rsptrace attach PID [ELF]`: traces a process that runs, and lets go of it. Gives the exit status. */
export function recordAttached(args: AttachArguments): Promise<number> {
  const pid = processNamed(args.pid);
  const elf = args.elf ?? executableOf(pid);
  return withRecording(
    { ...args, elf },
    async (prepared) => report(prepared, await recordRunning(prepared, pid)),
    (file) => placeInProcess(pid, file),
  );
}

/** Records a process that runs, and lets go of it. */
export async function recordRunning(prepared: Prepared, pid: number): Promise<Recorded> {
  return (await recordUnder(prepared, { pid })).recording;
}

/** A program as a shell finds it: a name without a slash that is no file here is looked for in PATH. */
export function programNamed(name: string): string {
  if (name.includes('/') || existsSync(name)) return name;
  const places = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return places.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? name;
}

/** `rsptrace run PROGRAM -- ARGUMENTS`: starts a program of this machine. Gives the exit status. */
export function recordProgram(args: RunArguments & RecordingArguments): Promise<number> {
  refuseMachineOptions(args);
  const command = [resolve(args.elf), ...args.command];
  return withRecording(
    args,
    async (prepared) => {
      let signalled: NodeJS.Signals | undefined;
      const ending = new AbortController();
      using watch = new GuestWatch(guestLimits(args, [0]), () => ending.abort());
      const timed = onEvents((event) => watch.time(event.type === 'gap' ? event.to : event.time));
      const sink = args['guest-time-limit'] === undefined ? prepared.sink : tee([prepared.sink, timed]);
      watch.begin();
      const { recording, server } = await recordUnder(
        { ...prepared, sink },
        { command },
        {
          ending: ending.signal,
          onSignal: (name) => {
            signalled = name;
          },
        },
      );
      const runsOn = args['keep-running'] || (recording.end === 'interrupted' && signalled === 'SIGINT');
      if (recording.end !== 'guest-ended') await endProgram(server, runsOn);
      return report(prepared, recording, guestOf(recording, watch, args));
    },
    placeAtStart,
  );
}

/** How a program ended that rsptrace started. */
function guestOf({ stop, end }: Recorded, watch: GuestWatch, args: RunArguments): Guest {
  const exit = end === 'guest-ended' ? exitOf(stop) : undefined;
  return {
    exit: stopText(stop),
    status: exit?.status ?? null,
    isStatusOurs: args['guest-status'],
    verdicts: watch.verdicts(exit),
    panic: undefined,
  };
}

function exitOf(stop: Recorded['stop']): GuestExit | undefined {
  if (stop?.kind === 'exited') return { status: stop.status, signal: null };
  return stop?.kind === 'terminated' ? { status: null, signal: `signal ${stop.signal}` } : undefined;
}

/**
 * Starts a program, records it while stdout is ours (what it writes there goes to stderr), and ends it with the
 * recording.
 */
export async function recordStarted(prepared: Prepared, command: readonly string[]): Promise<Recorded> {
  const { recording, server } = await recordUnder(prepared, { command }, { isStdoutOurs: true });
  if (recording.end !== 'guest-ended') await endProgram(server, false);
  return recording;
}

/** Starts gdbserver, records, and waits until gdbserver has let go of the process. */
async function recordUnder(
  prepared: Prepared,
  subject: Subject,
  { isStdoutOurs, ...options }: Pick<SessionOptions, 'ending' | 'onSignal'> & OutputWish = {},
): Promise<{ readonly recording: Recorded; readonly server: Gdbserver }> {
  const { args, logger } = prepared;
  using wire = wireRecorder(args, logger);
  const at = { args, logger, wire, isStdoutOurs };
  const { result, server, connectingMs, damage } = await underGdbserver(subject, at, (target) => {
    target.recordingBegins();
    return recordSession(prepared, target.session, { isLaunched: 'command' in subject, ...options });
  });
  const standingMs = result.standingMs + connectingMs;
  return { recording: { ...result, standingMs, serverFault: damage }, server };
}

interface OutputWish {
  /** Results go to stdout, so what the program writes there goes to stderr. With `--json` it always does. */
  readonly isStdoutOurs?: boolean | undefined;
}

interface Under<T> {
  readonly result: T;
  /** It has gone; its process may be there. */
  readonly server: Gdbserver;
  /** How long the process stood before it was connected to. */
  readonly connectingMs: number;
  /** What its user must know of this gdbserver. */
  readonly damage: string | undefined;
}

/** Starts gdbserver, connects, runs `body`, and waits until gdbserver has let go of the process. */
export async function underGdbserver<T>(
  subject: Subject,
  { args, logger, wire, isStdoutOurs = args.json }: Omit<StubOptions, 'arch'> & OutputWish,
  body: (target: AtTarget) => Promise<T>,
): Promise<Under<T>> {
  const damage = vectorDamage();
  if (damage !== undefined) logger.warn({}, damage);
  const begun: { server?: Gdbserver; connectingMs: number } = { connectingMs: 0 };
  const open = async (): Promise<Session> => {
    const server = await Gdbserver.start(subject, isStdoutOurs ? 2 : 'inherit');
    begun.server = server;
    const session = await connect(server.address, { logger, timeoutMs: args.timeout, waitMs, recordWire: wire });
    begun.connectingMs = performance.now() - server.since;
    return session;
  };
  try {
    const result = await atTarget(open, body);
    const { server, connectingMs } = begun;
    if (server === undefined) throw new RsptraceError('GDBSERVER_FAILED', 'gdbserver was not started');
    await server.gone();
    return { result, server, connectingMs, damage };
  } finally {
    begun.server?.[Symbol.dispose]();
  }
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
  process.stderr.write('rsptrace: recording ended, the program runs on; Ctrl-C ends it\n');
  const end = (): void => server.kill('SIGTERM');
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  await server.processEnded();
  process.off('SIGINT', end);
  process.off('SIGTERM', end);
}

/** @throws RsptraceError `USAGE`, `ATTACH_NO_PROCESS` */
export function processNamed(text: string): number {
  const pid = Number(text);
  if (!(Number.isSafeInteger(pid) && pid > 0)) {
    throw new RsptraceError('USAGE', `'${text}' is no process number`, {
      hint: '`pgrep -a NAME` shows the numbers of those that run',
    });
  }
  return pid;
}

/** The program that a process runs: the file itself, also if it was moved or removed. */
export function executableOf(pid: number): string {
  const link = `/proc/${pid}/exe`;
  try {
    const path = readlinkSync(link);
    return path.endsWith(' (deleted)') ? link : path;
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT') {
      throw new RsptraceError('ATTACH_NO_PROCESS', `there is no process ${pid}`, {
        hint: '`pgrep -a NAME` shows the numbers of those that run',
      });
    }
    throw new RsptraceError('GDBSERVER_FAILED', `the program of process ${pid} cannot be read: ${code}`, {
      hint: 'tracing it needs the same user, or root',
    });
  }
}

const PT_INTERP = 3;

/** A program that Linux starts, not a kernel: it has a loader, or the C library's start. */
export function isLinuxProgram(elf: ElfFile): boolean {
  return (
    elf.segments.some(({ type }) => type === PT_INTERP) ||
    elf.has('.note.ABI-tag') ||
    elf.symbols.named('__libc_start_main').length > 0
  );
}
