// Recordings of a process of this machine: one that runs, or a program that is started.

import { resolve } from 'node:path';
import type { Gdbserver, Subject } from '../api/index.js';
import { RsptraceError } from '../base/errors.js';
import { type GuestExit, type GuestLimits, GuestWatch } from '../check/index.js';
import { readLoadedFiles } from '../inject/index.js';
import { letRun, placeAtStart, placeInProcess } from '../target/index.js';
import { onEvents, tee, timeOf } from '../trace/index.js';
import {
  endProgram,
  endSoon,
  executableOf,
  type OutputWish,
  processNamed,
  serverGone,
  underGdbserver,
} from './local-process.js';
import type { AttachArguments, GuestArguments, RecordingArguments, RunArguments } from './options/recording.js';
import { type Guest, report } from './recording/outcome.js';
import { type Prepared, withRecording } from './recording/prepare.js';
import { type Recorded, recordSession, type SessionOptions, signalText, stopText } from './recording/session.js';

/** How long a program may be left in order that is to be ended after a signal, in milliseconds. */
const leaveMs = 700;
/** How long records may be understood after such a signal, in milliseconds. */
const digestMs = 500;

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
export async function recordRunning(
  prepared: Prepared,
  pid: number,
  watched: Pick<SessionOptions, 'ending' | 'watcher'> = {},
): Promise<Recorded> {
  readLoadedFiles(pid);
  return (await recordUnder(prepared, { pid }, watched)).recording;
}

/** `rsptrace run PROGRAM -- ARGUMENTS`: starts a program of this machine. Gives the exit status. */
export function recordProgram(args: RunArguments & RecordingArguments): Promise<number> {
  refuseMachineOptions(args);
  const command = [resolve(args.elf), ...args.command];
  return withRecording(
    args,
    async (prepared) => {
      let signalled: NodeJS.Signals | undefined;
      let deadline: number | undefined;
      const ending = new AbortController();
      using watch = new GuestWatch(guestLimits(args, [0]), () => ending.abort());
      const timed = onEvents((event) => watch.time(timeOf(event)));
      const sink = args['guest-time-limit'] === undefined ? prepared.sink : tee([prepared.sink, timed]);
      watch.begin();
      const runsOn = (end: Recorded['end']): boolean =>
        args['keep-running'] || (end === 'interrupted' && signalled === 'SIGINT');
      const { recording, server } = await recordUnder(
        { ...prepared, sink },
        { command },
        {
          ending: ending.signal,
          deadline: () => deadline,
          onSignal: (name, server) => {
            signalled = name;
            // Nobody is there who could end it by a second one.
            if (name === 'SIGINT' || args['keep-running']) return;
            deadline = performance.now() + digestMs;
            setTimeout(() => server.kill('SIGKILL'), leaveMs).unref();
          },
          onLeft: (end, server) => {
            if (end !== 'guest-ended' && !runsOn(end)) endSoon(server);
          },
        },
      );
      if (recording.end !== 'guest-ended') await endProgram(server, runsOn(recording.end));
      return report(prepared, recording, guestOf(recording, watch, args));
    },
    placeAtStart,
  );
}

/** A server that was ended from outside says nothing of its program. */
function withUnseenEnd(recording: Recorded, subject: Subject): Recorded {
  const isClosed = recording.end === 'failed' && codeOf(recording.error) === 'RSP_CLOSED';
  if (!isClosed && (recording.end !== 'guest-ended' || recording.stop?.kind !== 'gone')) return recording;
  return { ...recording, end: 'failed', error: serverGone(subject) };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof RsptraceError ? error.code : undefined;
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
  return stop?.kind === 'terminated' ? { status: null, signal: signalText(stop) } : undefined;
}

/**
 * Starts a program, records it while stdout is ours (what it writes there goes to stderr), and ends it with the
 * recording.
 */
export async function recordStarted(
  prepared: Prepared,
  command: readonly string[],
  watched: Pick<SessionOptions, 'ending' | 'watcher'> = {},
): Promise<Recorded> {
  const { recording, server } = await recordUnder(prepared, { command }, { isStdoutOurs: true, ...watched });
  if (recording.end !== 'guest-ended') await endProgram(server, false);
  return recording;
}

/** Like those of {@link SessionOptions}, with the server that has the program. */
interface UnderOptions extends Pick<SessionOptions, 'ending' | 'deadline' | 'watcher'> {
  readonly onSignal?: (name: NodeJS.Signals, server: Gdbserver) => void;
  readonly onLeft?: (end: Recorded['end'], server: Gdbserver) => void;
}

/** Starts gdbserver, records, and waits until gdbserver has let go of the process. */
async function recordUnder(
  prepared: Prepared,
  subject: Subject,
  { isStdoutOurs, ending, deadline, watcher, onSignal, onLeft }: UnderOptions & OutputWish = {},
): Promise<{ readonly recording: Recorded; readonly server: Gdbserver }> {
  const { args, logger } = prepared;
  const at = { args, logger, isStdoutOurs };
  const { result, server, damage } = await underGdbserver(subject, at, (target, under) => {
    target.recordingBegins();
    const isLaunched = 'command' in subject;
    // A program that is started does without what would be damaged.
    const stopsHarm = under.damage !== undefined && !isLaunched;
    return recordSession(prepared, target.session, {
      ...{ isLaunched, stopsHarm, ending, deadline, watcher },
      letRun: isLaunched ? undefined : (stoodMs) => letRun(target.session, prepared.program.arch, stoodMs),
      onSignal: (name) => onSignal?.(name, under.server),
      onLeft: (end) => onLeft?.(end, under.server),
    });
  });
  return { recording: { ...withUnseenEnd(result, subject), serverFault: damage }, server };
}

/** `usual`: the exit statuses that mean success if none is given. */
export function guestLimits(args: GuestArguments, usual: readonly number[]): GuestLimits {
  const given = args['success-status'];
  return {
    expected: args['console-expect'],
    failing: args['console-fail'],
    until: args['console-until'],
    hostMs: args['time-limit'],
    guestNs: args['guest-time-limit'],
    success: given.length > 0 ? given : usual,
  };
}

/** What a program's output would have to come through us for, or a machine be there. Throws `USAGE`. */
function refuseMachineOptions(args: GuestArguments & { readonly console: string | undefined }): void {
  const ofConsole = (['console', 'console-expect', 'console-fail', 'console-until'] as const).find(
    (name) => args[name] !== undefined && args[name].length > 0,
  );
  if (ofConsole !== undefined) {
    throw new RsptraceError('USAGE', `--${ofConsole} is for machines: what a program writes does not pass rsptrace`, {
      hint: 'redirect its output, and look at that',
    });
  }
  if (args.deterministic) {
    throw new RsptraceError('USAGE', '--deterministic is for machines: no program of this one runs twice alike', {
      hint: 'leave it out',
    });
  }
}
