import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Architecture } from '../arch/index.js';
import { isRefusal, type Refusal, RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import type { RecordOptions } from '../record/index.js';
import type { Session, WireRecorder } from '../rsp/index.js';
import { HiddenMemory, linuxStart, planHiddenMemory } from '../scratch/index.js';
import {
  biasWhenItRuns,
  choosesItsPlace,
  connect,
  kernelNotFound,
  nanosPerInstruction,
  ResetVector,
  sleeps,
  verifyArchitecture,
} from '../target/index.js';
import { type Qemu, startQemu } from './qemu.js';

/** How long a QEMU whose stub has closed the connection may take to end, in milliseconds. */
const lastWordsMs = 1000;

/** Only breakpoints will be used, so that no memory need be hidden from the guest. */
export const onlyStops: Refusal = { refused: '--engine stop' };

interface MachineOptions {
  /** A command that begins with qemu-system-...; what makes it wait for us is added. */
  readonly command: readonly string[];
  readonly elf: ElfFile;
  readonly arch: Architecture;
  readonly logger: Logger;
  /** Why no memory is to be hidden from the guest; undefined: some is, if it can be. */
  readonly hidesNothing: Refusal | undefined;
  /** Bytes that trampolines may need, if that is known. */
  readonly codeSize?: number;
  readonly timeoutMs?: number;
  readonly wire?: WireRecorder | undefined;
  /** Lets it run on if we are killed, see {@link QemuOptions}. */
  readonly cleanUp?: readonly string[] | undefined;
  readonly onConsole: (text: Uint8Array) => void;
}

/** A machine of our own that stands at its reset vector. Disposing of it ends it. */
export interface Machine extends AsyncDisposable {
  readonly qemu: Qemu;
  readonly session: Session;
  /** What a recording is to know of it. */
  readonly known: Pick<RecordOptions, 'resetVector' | 'nanosPerInstruction' | 'clockSleeps'>;
  /** RAM that the guest does not know of, or why there is none. */
  readonly hidden: HiddenMemory | Refusal;
}

/**
 * Starts QEMU frozen and connects to it.
 * @throws RsptraceError `RUN_*`, `ARCH_MISMATCH`, `KERNEL_MOVES`, `RSP_*`
 */
export async function startMachine(options: MachineOptions): Promise<Machine> {
  const { command, elf, arch, logger, hidesNothing, codeSize, cleanUp, onConsole } = options;
  const program = command[0] ?? '';
  const commandLine = await linuxStart(command);
  if (commandLine !== undefined && choosesItsPlace(elf, commandLine)) {
    throw new RsptraceError(
      'KERNEL_MOVES',
      'this Linux chooses at random where it runs (KASLR), so none of its functions is where the ELF says',
      { hint: 'add nokaslr to its command line: -append "... nokaslr"' },
    );
  }
  verifyEmulator(program, arch.name);
  const planned = hidesNothing ?? (await planHiddenMemory(command, codeSize));
  const plan = isRefusal(planned) ? undefined : planned;
  const owned: (Disposable | undefined)[] = [plan];
  const end = (): void => {
    for (const each of owned.toReversed()) each?.[Symbol.dispose]();
  };
  try {
    const qemu = await startQemu(plan?.command ?? command, onConsole, { cleanUp });
    owned.push(qemu);
    const session = await orDied(qemu, program, connectTo(qemu, options));
    owned.push({ [Symbol.dispose]: () => session.close() });
    const resetVector = await orDied(qemu, program, ResetVector.find(session, arch, logger));
    const hidden = plan ? await orDied(qemu, program, HiddenMemory.reserve(session, plan)) : (planned as Refusal);
    const dispose = async (): Promise<void> => {
      // In good order: it may run on.
      await session[Symbol.asyncDispose]();
      end();
    };
    return { qemu, session, known: { resetVector, ...clockOf(command) }, hidden, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    end();
    throw error;
  }
}

/** What the guest's clock is, as far as QEMU's command line says it. */
export function clockOf(command: readonly string[]): Pick<RecordOptions, 'nanosPerInstruction' | 'clockSleeps'> {
  return { nanosPerInstruction: nanosPerInstruction(command), clockSleeps: sleeps(command) };
}

/** QEMU says in its name what it emulates. Throws `ARCH_MISMATCH`. */
function verifyEmulator(program: string, arch: string): void {
  const emulated = /^qemu-system-(\w+)$/.exec(basename(program))?.[1];
  if (emulated === undefined || emulated === arch) return;
  throw new RsptraceError('ARCH_MISMATCH', `the ELF is for ${arch}, ${basename(program)} emulates ${emulated}`, {
    hint: `start qemu-system-${arch}, or give the ELF that runs there`,
  });
}

/** What is asked of QEMU before the guest runs. Throws `RUN_EXITED` if it fails because QEMU has ended. */
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

/** Of a kernel that QEMU cannot load by itself. */
const bootsFromDisk = 'a kernel that its boot loader starts needs its disk image: rsptrace run KERNEL --';

function exited({ lastLines }: Qemu, program: string, how: string): RsptraceError {
  const last = lastLines.filter((line) => line !== '').join(' | ');
  const said = last === '' ? 'it has said nothing on stderr' : `its last lines: ${last}`;
  const needsLoader = /without PVH ELF Note/.test(last);
  return new RsptraceError('RUN_EXITED', `${program} ended (${how}) before the guest was started`, {
    hint: needsLoader ? `${said}; ${bootsFromDisk} ${program} -drive format=raw,file=IMAGE` : said,
  });
}

/** The stub needs a moment to listen; a QEMU that ends first has said why on stderr. */
async function connectTo(
  qemu: Qemu,
  { command, logger, timeoutMs, wire: recordWire }: Pick<MachineOptions, 'command' | 'logger' | 'timeoutMs' | 'wire'>,
): Promise<Session> {
  const abort = new AbortController();
  const early = qemu.ended.then(({ text }) => {
    abort.abort();
    throw exited(qemu, command[0] ?? '', text);
  });
  const waiting = { waitMs: 10_000, signal: abort.signal };
  const session = connect(`unix:${qemu.socket}`, { logger, timeoutMs, recordWire, ...waiting });
  session.catch(() => {});
  early.catch(() => {});
  return Promise.race([session, early]);
}

/** How long a loader may take, and how often the kernel is looked for, in milliseconds. */
const wait = { mostMs: 120_000, everyMs: 20 };

/**
 * How far its loader moves a kernel: a machine of this command boots until the kernel runs, and is ended then. Nothing
 * is recorded. It writes to no disk (`-snapshot`), has no input, and its console is not shown.
 * @throws RsptraceError `RUN_*`, `RSP_*`, `ARCH_MISMATCH`, `LOAD_ADDRESS_UNKNOWN`
 */
export async function firstBoot(
  options: Pick<MachineOptions, 'command' | 'elf' | 'arch' | 'logger' | 'timeoutMs'>,
): Promise<bigint> {
  const { command, elf, arch } = options;
  const program = command[0] ?? '';
  verifyEmulator(program, arch.name);
  using qemu = await startQemu([...command, '-snapshot'], () => {}, { hasInput: false });
  const session = await orDied(qemu, program, connectTo(qemu, options));
  try {
    verifyArchitecture(session, arch);
    const bias = await biasWhenItRuns(session, arch, elf, wait);
    if (bias === undefined) throw kernelNotFound(elf, session);
    return bias;
  } finally {
    session.close();
  }
}
