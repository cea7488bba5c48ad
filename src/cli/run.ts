import { basename } from 'node:path';
import {
  clockOf,
  type DeterministicCommand,
  deterministicCommand,
  firstBoot,
  onlyStops,
  startMachine,
} from '../api/index.js';
import { addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { GuestWatch } from '../check/index.js';
import { ElfFile } from '../elf/index.js';
import { panicPlaces } from '../probes/index.js';
import { trampolineRoom } from '../record/index.js';
import { isLinuxProgram, isMovedAtBoot } from '../target/index.js';
import { onEvents, TaskSummary, tee, timeOf } from '../trace/index.js';
import { leavesStub } from './at-target.js';
import { ConsoleFile } from './console-file.js';
import { endOutputLine, note, showOutput } from './failure.js';
import { isCut, LastOrders } from './last-orders.js';
import { programNamed } from './local-process.js';
import { wireRecorder } from './open-output.js';
import type { RecordingArguments, RunArguments } from './options/recording.js';
import { leavePanic } from './panic-report.js';
import { guestLimits, recordProgram } from './process.js';
import { ReadingLine } from './reading-line.js';
import { planWishes, refusedScratch } from './recording/asked.js';
import { report } from './recording/outcome.js';
import { type Prepared, withRecording } from './recording/prepare.js';
import { type Recorded, recordSession } from './recording/session.js';
import { nothingToBoot, orUntraced, runTarget, verifyLoadable } from './runner.js';

/**
 * What QEMU ends with where success is written to isa-debug-exit: `value << 1 | 1`. 0, and the 0x10 of kernels that
 * were made after "Writing an OS in Rust" (os.phil-opp.com/testing).
 */
const debugExits = [0, 1, 33];

/**
 * `rsptrace run kernel.elf -- qemu-system-...`: starts QEMU, records from its first instruction. Gives the exit
 * status.
 */
export async function recordRun(given: RunArguments): Promise<number> {
  const elf = given.elf === undefined ? undefined : programNamed(given.elf);
  const isMachine = /^qemu-system-/.test(basename(given.command[0] ?? ''));
  if (!isMachine && elf !== undefined && isLinuxProgram(await ElfFile.open(elf))) return program(given, elf);
  const [name, ...rest] = given.command;
  const own = name === undefined ? undefined : programNamed(name);
  if (!isMachine && elf === undefined && own !== undefined && (await isOwnProgram(own)))
    return program({ ...given, command: rest }, own);
  const target = runTarget(elf, given.command);
  const { command, notes: fixed } = given.deterministic
    ? deterministicCommand(target.command)
    : ({ command: target.command, notes: [] } satisfies Omit<DeterministicCommand, 'added'>);
  const args = { ...given, elf: target.elf, command };
  const recording = withRecording(args, async (prepared) => {
    verifyLoadable(prepared.program.elf, command);
    if (target.isOurs) note(`starts ${target.command.join(' ')}`);
    const { text: sampled } = prepared.program.specs.find(({ kind }) => kind === 'sample') ?? {};
    const notes = sampled && given.deterministic ? [...fixed, `${sampled} interrupts by the host's clock`] : fixed;
    note(...notes.map((why) => `not every run will be the same: ${why}`));
    return runGuest(args, prepared);
  });
  return orUntraced(recording, args, command, hasDebugExit(command) ? debugExits : [0]);
}

function program(args: RunArguments, elf: string): Promise<number> {
  return orUntraced(recordProgram({ ...args, elf }), args, [elf, ...args.command], [0]);
}

function hasDebugExit(command: readonly string[]): boolean {
  return command.some((word) => /^isa-debug-exit\b/.test(word));
}

/** How far a first boot shows that its loader moves a kernel; undefined if it is said, or if none moves it. */
async function movedBy(
  { 'load-bias': given, timeout, progress, elf: path, command }: RunArguments & RecordingArguments,
  { program: { elf, arch }, logger }: Prepared,
): Promise<bigint | undefined> {
  if (given !== undefined || !isMovedAtBoot(elf)) return undefined;
  const started = performance.now();
  using line = new ReadingLine(path, progress, 'boots once to see where the loader puts');
  const found = await firstBoot({ command, elf, arch, logger, timeoutMs: timeout });
  line[Symbol.dispose]();
  const took = ((performance.now() - started) / 1000).toFixed(1);
  note(
    `a first boot of ${took} s has shown that the loader moves ${basename(path)} by ${hex(addr(found))}; --load-bias ${hex(addr(found))} spares it`,
  );
  return found;
}

/** Cargo's runner is given a program where another one is given its QEMU. */
async function isOwnProgram(path: string): Promise<boolean> {
  const elf = await ElfFile.open(path).catch(() => undefined);
  return elf !== undefined && isLinuxProgram(elf);
}

async function runGuest(args: RunArguments & RecordingArguments, prepared: Prepared): Promise<number> {
  using wire = wireRecorder(args, prepared.logger, true);
  using kept = new ConsoleFile(args.console);
  const ending = new AbortController();
  const successes = hasDebugExit(args.command) ? debugExits : [0];
  using watch = new GuestWatch(guestLimits(args, successes), () => ending.abort());
  const out = args.json ? process.stderr : process.stdout;
  let record: ((text: Uint8Array) => void) | undefined;
  const onConsole = (text: Uint8Array): void => {
    showOutput(out, text);
    kept.write(text);
    watch.console(text);
    record?.(text);
  };
  const { elf, arch } = prepared.program;
  const loadBias = await movedBy(args, prepared);
  await using machine = await startMachine({
    ...{ command: args.command, elf, arch, logger: prepared.logger, wire, onConsole },
    ...{
      timeoutMs: args.timeout,
      hidesNothing: args.engine === 'stop' ? onlyStops : refusedScratch(args),
      codeSize: trampolineRoom(prepared.program, planWishes(args, prepared.program)),
      cleanUp: args['keep-running'] ? leavesStub('machine', args.elf) : undefined,
    },
  });
  note(...nothingToBoot(args.elf, args.command));
  let signalled: NodeJS.Signals | undefined;
  // After a SIGTERM or SIGHUP no user is there who could end it by a second one.
  const mayRunOn = (end: Recorded['end']): boolean =>
    end !== 'failed' && (args['keep-running'] || (end === 'interrupted' && signalled === 'SIGINT'));
  const last = new LastOrders(machine, mayRunOn);
  watch.begin();
  const tasks = new TaskSummary();
  const timed = onEvents((event) => watch.time(timeOf(event)));
  const recording = await recordSession({ ...prepared, sink: tee([prepared.sink, timed, tasks]) }, machine.session, {
    isLaunched: true,
    loadBias,
    ...{ hidden: machine.hidden, ...machine.known },
    // When a line comes is up to the host: two runs that are alike else would not be.
    ...(isRepeatable(args) ? {} : { console: (take) => (record = take) }),
    panics: args['on-panic'] === 'report' ? panicPlaces(prepared.program) : [],
    ending: ending.signal,
    onSignal: (name) => {
      signalled = name;
    },
    onLeft: (end) => last.left(end),
  });
  const panic = recording.end === 'panicked' ? await leavePanic(machine.session, prepared, tasks) : undefined;
  await last.finish(recording);
  const { endedByUs } = last;
  const exit = await machine.qemu.ended;
  endOutputLine();
  const verdicts = [...watch.verdicts(endedByUs ? undefined : exit), ...(panic ? [panic.verdict] : [])];
  return report(prepared, endSeen(recording, exit.signal, endedByUs, args), {
    ...{ exit: exit.text, status: endedByUs ? null : exit.status, isStatusOurs: args['guest-status'], verdicts, panic },
  });
}

/** Its clock counts instructions and nothing else. */
function isRepeatable({ deterministic, command }: RunArguments): boolean {
  const { nanosPerInstruction, clockSleeps } = clockOf(command);
  return deterministic || (nanosPerInstruction !== undefined && !clockSleeps);
}

/**
 * A QEMU that a signal ended while it was traced is an error. One that ended by itself while it owed an answer, as to
 * an interrupt for a sample, is the guest's end.
 */
function endSeen(recording: Recorded, signal: string | null, endedByUs: boolean, { command }: RunArguments): Recorded {
  if (endedByUs) return recording;
  if (isCut(recording.error) && signal === null) return { ...recording, end: 'guest-ended', error: undefined };
  if (recording.end !== 'guest-ended' || signal === null) return recording;
  const error = new RsptraceError('RUN_KILLED', `${command[0]} was ended by ${signal} while it was traced`);
  return { ...recording, end: 'failed', error };
}
