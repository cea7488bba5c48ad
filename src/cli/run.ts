import { basename } from 'node:path';
import { type Qemu, startMachine } from '../api/index.js';
import { RsptraceError } from '../base/errors.js';
import { ElfFile } from '../elf/index.js';
import { nanosPerInstruction } from '../facts/index.js';
import type { Recording } from '../recorder/index.js';
import { ConsoleFile } from './console-file.js';
import type { RecordingArguments } from './options.js';
import { isLinuxProgram, recordProgram } from './process.js';
import { recordSession, report, withRecording } from './recording.js';
import { wireRecorder } from './wire-file.js';

export interface RunArguments extends RecordingArguments {
  readonly command: readonly string[];
  readonly console: string | undefined;
  readonly 'keep-running': boolean;
}

const newline = 10;

/** How long a QEMU that was asked to end may take, in milliseconds. */
const endMs = 3000;

/**
 * `rsptrace run kernel.elf -- qemu-system-...`: starts QEMU, records from its first instruction. Gives the exit
 * status.
 */
export async function recordRun(args: RunArguments): Promise<number> {
  const isMachine = /^qemu-system-/.test(basename(args.command[0] ?? ''));
  if (!isMachine && isLinuxProgram(await ElfFile.open(args.elf))) return recordProgram(args);
  return withRecording(args, async (prepared) => {
    using wire = wireRecorder(args, prepared.logger, true);
    using kept = new ConsoleFile(args.console);
    const shown = args.json ? process.stderr : process.stdout;
    let inLine = false;
    const onConsole = (text: Uint8Array): void => {
      shown.write(text);
      kept.write(text);
      inLine = text.length > 0 ? text.at(-1) !== newline : inLine;
    };
    const { elf, arch } = prepared.program;
    await using machine = await startMachine({
      ...{ command: args.command, elf, arch, logger: prepared.logger, wire, onConsole },
      ...{ timeoutMs: args.timeout, onlyStops: args.engine === 'stop', outlives: args['keep-running'] },
    });
    const { qemu, session, hidden, resetVector } = machine;
    let signalled: NodeJS.Signals | undefined;
    const recording = await recordSession(prepared, session, {
      isLaunched: true,
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

/**
 * After the recording: a guest that ended takes QEMU along; one that `runsOn` does so until Ctrl-C. True when it was
 * ended here.
 */
async function finish(qemu: Qemu, recording: Recording, runsOn: boolean): Promise<boolean> {
  let endedByUs = false;
  const kill = (signal: 'SIGTERM' | 'SIGKILL'): void => {
    endedByUs ||= qemu.running;
    qemu.kill(signal);
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
