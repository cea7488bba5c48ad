import { fileURLToPath } from 'node:url';
import { onSignals, Supervisor } from '../api/index.js';
import type { Architecture } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { isProcess, parseRemote, type Session } from '../rsp/index.js';
import { connect } from '../target/index.js';
import { showConsole } from './console-file.js';
import { note } from './failure.js';
import { wireRecorder } from './open-output.js';
import type { CommonArguments } from './options/common.js';

/** What a command knows of a target before it connects. */
export interface BeforeTarget {
  readonly args: CommonArguments;
  readonly logger: Logger;
  /** The ELF's. */
  readonly arch?: Architecture | undefined;
  /** The ELF's path. Without it what a killed rsptrace leaves is not taken out. */
  readonly path?: string | undefined;
}

/** A target that a command has connected to, or is about to. */
export interface AtTarget {
  readonly session: Session;
  /** From here on the first signal ends the recording, which itself leaves the target. */
  recordingBegins(): void;
  /** Connects once more, where the connection is lost. */
  reopen(): Promise<Session>;
}

/** A target at the stub of --remote. */
interface AtStub extends AtTarget {
  /** What the target prints through its stub is also given to `take`, from now on. */
  readonly console: (take: (text: Uint8Array) => void) => void;
}

/** Connects to the stub of --remote, as {@link atTarget} does. The guest's console goes to stderr. */
export async function atStub<T>(
  remote: string,
  { args, logger, arch, path }: BeforeTarget,
  body: (target: AtStub) => Promise<T>,
): Promise<T> {
  using recordWire = wireRecorder(args, logger);
  const expectedArchitecture = arch?.name;
  let taken: ((text: Uint8Array) => void) | undefined;
  const onConsole = (text: Uint8Array): void => {
    showConsole(text);
    taken?.(text);
  };
  const open = (): Promise<Session> =>
    connect(remote, { logger, timeoutMs: args.timeout, onConsole, recordWire, expectedArchitecture });
  const isLeft = path !== undefined && parseRemote(remote).kind !== 'replay';
  const console: AtStub['console'] = (take) => {
    taken = take;
  };
  return await atTarget(open, (target) => body({ ...target, console }), {
    cleanUp: isLeft ? [...leavesStub('stub', path), remote] : undefined,
  });
}

interface LeavingOptions {
  /** Is run if rsptrace is killed. */
  readonly cleanUp?: readonly string[] | undefined;
  /** What becomes of the target after a signal. */
  readonly after?: string | undefined;
}

/**
 * Connects, runs `body`, and leaves the target as it was. Connecting stops the target. So from then to the end a
 * signal (Ctrl-C) also leaves the target, which would otherwise stay stopped for ever. While a file is being read the
 * signal waits.
 * @throws RsptraceError `INTERRUPTED` after a signal
 */
export async function atTarget<T>(
  open: () => Promise<Session>,
  body: (target: AtTarget) => Promise<T>,
  { cleanUp, after = 'the target goes on as it was' }: LeavingOptions,
): Promise<T> {
  let signalled: NodeJS.Signals | undefined;
  let session: Session | undefined;
  let count = 0;
  let recording = false;
  using handled = onSignals((signal) => {
    count++;
    if (count === 2 && session?.state.kind !== 'gone')
      note('leaving the target as it was; a third signal gives that up');
    if (count > 2) {
      handled[Symbol.dispose]();
      process.kill(process.pid, signal);
    }
    if (recording || count > 1) return;
    signalled = signal;
    // Later requests of the body fail.
    if (session !== undefined) session.leaveAsFound().catch(() => {});
  });
  using supervisor = cleanUp && new Supervisor(cleanUp);
  try {
    const opened = await open();
    session = opened;
    await using _left = { [Symbol.asyncDispose]: () => opened.leaveAnyhow() };
    // Its server has a life of its own: docs/detach.md.
    if (isProcess(opened.features)) supervisor?.dismiss();
    await pendingSignals();
    if (signalled !== undefined) {
      await opened.leaveAsFound();
      throw interrupted(signalled, after);
    }
    const recordingBegins = (): void => {
      recording = true;
    };
    return await body({ session: opened, recordingBegins, reopen: open });
  } catch (error) {
    throw signalled === undefined ? error : interrupted(signalled, after);
  }
}

/** A signal that came while this thread was busy is delivered in the event loop's next turn. */
function pendingSignals(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function interrupted(signal: NodeJS.Signals, after: string): RsptraceError {
  return new RsptraceError('INTERRUPTED', `ended by ${signal} before it was done; ${after}`);
}

/** What cleans up when this rsptrace is killed (`Supervisor`): next to this file, or to the bundle that has it. */
const cleanUp = fileURLToPath(new URL('clean-up.js', import.meta.url));

/** The first words of a command whose last is a word by which a gdbserver of ours is found. */
export const leavesServer = [process.execPath, cleanUp, 'server'];

/** The first words of a command whose last is the address of a stub: somebody's, or that of a machine of ours. */
export function leavesStub(whose: 'stub' | 'machine', elf: string): readonly string[] {
  return [process.execPath, cleanUp, whose, elf];
}
