import { fileURLToPath } from 'node:url';
import { endingSignals, Supervisor } from '../api/index.js';
import type { Architecture } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { isProcess, parseRemote, type Session } from '../rsp/index.js';
import { connect, type TargetOptions } from '../target/index.js';
import { showConsole } from './console-file.js';
import { note } from './failure.js';
import type { CommonArguments } from './options/common.js';

export interface StubOptions {
  readonly args: CommonArguments;
  readonly logger: Logger;
  readonly wire?: TargetOptions['recordWire'] | undefined;
  /** The ELF's. */
  readonly arch?: Architecture;
  /** The ELF's path. */
  readonly elf: string;
}

/** How to connect to a target. */
interface Opener {
  readonly open: () => Promise<Session>;
  /** Is run if rsptrace is killed. */
  readonly cleanUp?: readonly string[] | undefined;
}

/** Connects to the stub of --remote when it is called. The guest's console goes to stderr. */
export function stubOpener(remote: string, { args, logger, wire, arch, elf }: StubOptions): Opener {
  const open = (): Promise<Session> =>
    connect(remote, {
      logger,
      timeoutMs: args.timeout,
      onConsole: showConsole,
      recordWire: wire,
      expectedArchitecture: arch?.name,
    });
  const isReplayed = parseRemote(remote).kind === 'replay';
  return { open, cleanUp: isReplayed ? undefined : [...leavesStub('stub', elf), remote] };
}

/** A target that a command has connected to, or is about to. */
export interface AtTarget {
  readonly session: Session;
  /** From here on the first signal ends the recording, which itself leaves the target. */
  recordingBegins(): void;
}

/**
 * Connects, runs `body`, and leaves the target as it was. Connecting stops the target. So from then to the end a
 * signal (Ctrl-C) also leaves the target, which would otherwise stay stopped for ever. While a file is being read the
 * signal waits. `after`: what becomes of the target then.
 * @throws RsptraceError `INTERRUPTED` after a signal
 */
export async function atTarget<T>(
  { open, cleanUp }: Opener,
  body: (target: AtTarget) => Promise<T>,
  after = 'the target goes on as it was',
): Promise<T> {
  let signalled: NodeJS.Signals | undefined;
  let session: Session | undefined;
  let count = 0;
  let recording = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    count++;
    if (count === 2 && session?.state.kind !== 'gone')
      note('leaving the target as it was; a third signal gives that up');
    if (count > 2) {
      release();
      process.kill(process.pid, signal);
    }
    if (recording || count > 1) return;
    signalled = signal;
    // Later requests of the body fail.
    if (session !== undefined) leave(session).catch(() => {});
  };
  const release = (): void => {
    for (const signal of endingSignals) process.off(signal, onSignal);
  };
  for (const signal of endingSignals) process.on(signal, onSignal);
  using supervisor = cleanUp && new Supervisor(cleanUp);
  try {
    await using opened = await open();
    // Its server has a life of its own: docs/detach.md.
    if (isProcess(opened.features)) supervisor?.dismiss();
    session = opened;
    await pendingSignals();
    if (signalled !== undefined) {
      await leave(opened);
      throw interrupted(signalled, after);
    }
    return await body({
      session: opened,
      recordingBegins: () => {
        recording = true;
      },
    });
  } catch (error) {
    throw signalled === undefined ? error : interrupted(signalled, after);
  } finally {
    release();
  }
}

/** A guest that was never started is left stopped; any other runs on. */
async function leave(session: Session): Promise<void> {
  if (await (await session.stub()).neverRan()) session.close();
  else await session.detach();
}

/** A signal that came while this thread was busy is delivered in the event loop's next turn. */
function pendingSignals(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function interrupted(signal: NodeJS.Signals, after: string): RsptraceError {
  return new RsptraceError('INTERRUPTED', `ended by ${signal} before it was done; ${after}`);
}

/** What cleans up when this rsptrace is killed, see `Supervisor`: next to this file, or next to the bundle that has it. */
const cleanUp = fileURLToPath(new URL('clean-up.js', import.meta.url));

/** The first words of a command whose last is a word by which a gdbserver of ours is found. */
export const leavesServer = [process.execPath, cleanUp, 'server'];

/** The first words of a command whose last is the address of a stub: somebody's, or that of a machine of ours. */
export function leavesStub(whose: 'stub' | 'machine', elf: string): readonly string[] {
  return [process.execPath, cleanUp, whose, elf];
}
