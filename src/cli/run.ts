import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { isRefusal, type Refusal } from '../base/refusal.js';
import { HiddenMemory, linuxStart, planHiddenMemory } from '../engines/index.js';
import { choosesItsPlace, connect, nanosPerInstruction, ResetVector } from '../facts/index.js';
import type { Recording } from '../recorder/index.js';
import type { Session, WireRecorder } from '../rsp/index.js';
import { ConsoleFile } from './console-file.js';
import { type RecordingArguments, wireRecorder } from './options.js';
import { type Qemu, startQemu } from './qemu.js';
import { recordSession, report, withRecording } from './recording.js';

export interface RunArguments extends RecordingArguments {
  readonly command: readonly string[];
  readonly console: string | undefined;
  readonly 'keep-running': boolean;
}

const newline = 10;

/** How long a QEMU whose stub has closed the connection may take to end, in milliseconds. */
const lastWordsMs = 1000;

/** How long a QEMU that was asked to end may take, in milliseconds. */
const endMs = 3000;

/**
 * `rsptrace run kernel.elf -- qemu-system-...`: starts QEMU, records from its first instruction. Gives the exit
 * status.
 */
export function recordRun(args: RunArguments): Promise<number> {
  return withRecording(args, async (prepared) => {
    const commandLine = await linuxStart(args.command);
    if (commandLine !== undefined && choosesItsPlace(prepared.program.elf, commandLine)) {
      throw new RsptraceError(
        'KERNEL_MOVES',
        'this Linux chooses at random where it runs (KASLR), so none of its functions is where the ELF says',
        { hint: 'add nokaslr to its command line: -append "... nokaslr"' },
      );
    }
    verifyEmulator(args.command[0] ?? '', prepared.program.arch.name);
    using wire = wireRecorder(args, prepared.logger, true);
    using kept = new ConsoleFile(args.console);
    const shown = args.json ? process.stderr : process.stdout;
    const planned = args.engine === 'stop' ? { refused: '--engine stop' } : await planHiddenMemory(args.command);
    using plan = isRefusal(planned) ? undefined : planned;
    let inLine = false;
    const onConsole = (text: Buffer): void => {
      shown.write(text);
      kept.write(text);
      inLine = text.length > 0 ? text.at(-1) !== newline : inLine;
    };
    using qemu = await startQemu(plan?.command ?? args.command, onConsole, { outlives: args['keep-running'] });
    const program = args.command[0] ?? '';
    await using session = await orDied(qemu, program, connectTo(qemu, args, prepared.logger, wire));
    const resetVector = await orDied(qemu, program, ResetVector.find(session, prepared.program.arch, prepared.logger));
    const hidden = plan ? await orDied(qemu, program, HiddenMemory.reserve(session, plan)) : (planned as Refusal);
    qemu.keepAtSignals();
    let signalled: NodeJS.Signals | undefined;
    const recording = await recordSession(prepared, session, {
      hidden,
      resetVector,
      nanosPerInstruction: nanosPerInstruction(args.command),
      onSignal: (name) => {
        signalled = name;
      },
    });
    // After a SIGTERM or SIGHUP no user is there who could end it by a second one.
    const runsOn = args['keep-running'] || (recording.end === 'interrupted' && signalled === 'SIGINT');
    const endedByUs = await finish(qemu, recording, runsOn);
    const { signal, text } = await qemu.ended;
    // Messages of rsptrace begin a line of their own.
    if (inLine) shown.write('\n');
    const exit = { exit: text };
    if (recording.end !== 'guest-ended' || signal === null || endedByUs) return report(prepared, recording, exit);
    const error = new RsptraceError('RUN_KILLED', `${args.command[0]} was ended by ${signal} while it was traced`);
    return report(prepared, { ...recording, end: 'failed', error }, exit);
  });
}

/** QEMU's program name says what it emulates. Throws `ARCH_MISMATCH`. */
function verifyEmulator(program: string, arch: string): void {
  const emulated = /^qemu-system-(\w+)$/.exec(basename(program))?.[1];
  if (emulated === undefined || emulated === arch) return;
  throw new RsptraceError('ARCH_MISMATCH', `the ELF is for ${arch}, ${basename(program)} emulates ${emulated}`, {
    hint: `start qemu-system-${arch}, or give the ELF that runs there`,
  });
}

/**
 * Requests to QEMU before the guest runs. If one fails because QEMU has ended, the error says so. Throws
 * `RUN_EXITED`.
 */
async function orDied<T>(qemu: Qemu, program: string, asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    const isLink = error instanceof RsptraceError && /^RSP_(CLOSED|CONNECT|TIMEOUT|PROTOCOL)$/.test(error.code);
    const end = isLink ? await Promise.race([qemu.ended, delay(lastWordsMs)]) : undefined;
    if (end === undefined) throw error;
    throw exited(qemu, program, end.text);
  }
}

function exited({ lastLines }: Qemu, program: string, how: string): RsptraceError {
  const last = lastLines.filter((line) => line !== '').join(' | ');
  return new RsptraceError('RUN_EXITED', `${program} ended (${how}) before the guest was started`, {
    hint: last === '' ? 'it has said nothing on stderr' : `its last lines: ${last}`,
  });
}

/** The stub needs a moment to listen; a QEMU that ends first has said why on stderr. */
async function connectTo(
  qemu: Qemu,
  args: RunArguments,
  logger: Logger,
  recordWire: WireRecorder | undefined,
): Promise<Session> {
  const early = qemu.ended.then(({ text }) => {
    throw exited(qemu, args.command[0] ?? '', text);
  });
  const session = connect(`unix:${qemu.socket}`, {
    logger,
    timeoutMs: args.timeout,
    waitMs: 10_000,
    recordWire,
  });
  session.catch(() => {});
  early.catch(() => {});
  return Promise.race([session, early]);
}

/**
 * After the recording: if the guest ended, QEMU is ended too. If it `runsOn`, it does so until Ctrl-C. Returns true
 * if it was ended here.
 */
async function finish(qemu: Qemu, recording: Recording, runsOn: boolean): Promise<boolean> {
  let endedByUs = false;
  const kill = (signal: NodeJS.Signals): void => {
    endedByUs ||= qemu.running;
    qemu.process.kill(signal);
  };
  if (runsOn && recording.end !== 'failed') {
    if (!qemu.running) return false;
    process.stderr.write('rsptrace: recording ended, the guest runs on; Ctrl-C ends QEMU\n');
    const end = (): void => kill('SIGTERM');
    process.on('SIGINT', end);
    process.on('SIGTERM', end);
    await qemu.ended;
    process.off('SIGINT', end);
    process.off('SIGTERM', end);
    return endedByUs;
  }
  if (recording.end !== 'guest-ended') kill('SIGTERM');
  const killer = setTimeout(kill, endMs, 'SIGKILL');
  await qemu.ended;
  clearTimeout(killer);
  return endedByUs;
}
