// `rsptrace run` without an ELF: as cargo's runner, or with the ELF that QEMU loads.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { architectureOf } from '../arch/index.js';
import { hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { headOf } from '../base/file-bytes.js';
import type { ElfFile } from '../elf/index.js';
import { qemuOptions } from '../target/index.js';
import { ExitCode, note } from './failure.js';
import type { RunArguments } from './options/recording.js';

/** What to trace, and how it is started. */
interface RunTarget {
  readonly elf: string;
  readonly command: readonly string[];
  /** The command was made here. */
  readonly isOurs: boolean;
}

/**
 * The ELF and the command of `rsptrace run [ELF] -- COMMAND`. Without an ELF it is what QEMU's -kernel names; a command
 * that is an ELF itself, as cargo gives to a runner, gets a QEMU. Throws `RUN_NO_ELF`,
 * `ELF_UNREADABLE`.
 */
export function runTarget(elf: string | undefined, command: readonly string[]): RunTarget {
  if (elf !== undefined) return { elf, command, isOurs: false };
  const [program = '', ...args] = command;
  if (/^qemu-system-/.test(basename(program))) {
    const kernel = qemuOptions(args).findLast(({ name }) => name === 'kernel')?.value;
    if (kernel && isOtherThanElf(kernel)) throw noElf(`-kernel ${kernel} is none`);
    if (kernel) return { elf: kernel, command, isOurs: false };
    throw noElf("QEMU's arguments have no -kernel");
  }
  if (program === '') {
    throw new RsptraceError('USAGE', 'an argument is missing: the ELF of the kernel or program', {
      hint: "try 'rsptrace run --help'",
    });
  }
  const machine = machineOf(program);
  if (machine === undefined) throw noProgram(program);
  const start = architectureOf(machine)?.kernelCommand;
  if (start === undefined) throw noElf(`${program} is for a processor that rsptrace starts no QEMU for`);
  const append = args.length === 0 ? [] : ['-append', args.join(' ')];
  return { elf: program, command: [...start, '-kernel', program, ...append], isOurs: true };
}

/** What these say is that a program has nothing of what is probed. */
const nothingProbed: ReadonlySet<string> = new Set(['FUTURES_NONE', 'PROBE_INLINED', 'PROBE_NO_MATCH']);

/** Options that hold the program to something, which only a recording does, or that ask for its result. */
const bound = [
  ...(['budget', 'console', 'console-expect', 'console-fail', 'console-until', 'guest-time-limit'] as const),
  ...(['json', 'junit', 'keep-running', 'time-limit'] as const),
];

/**
 * Cargo (which sets CARGO_MANIFEST_DIR for what it runs) gives its runner each test binary, also one that has nothing
 * of what is probed. That runs without a trace, because an error would end `cargo test`. Gives the exit status.
 */
export async function orUntraced(
  recording: Promise<number>,
  args: RunArguments,
  [name = '', ...rest]: readonly string[],
  usual: readonly number[],
): Promise<number> {
  try {
    return await recording;
  } catch (thrown) {
    const isNothing = thrown instanceof RsptraceError && nothingProbed.has(thrown.code);
    const isBound = bound.some((option) => isGiven(args[option]));
    if (!isNothing || isBound || process.env.CARGO_MANIFEST_DIR === undefined) throw thrown;
    note(`${name} runs without a trace: ${thrown.message}`);
    const child = spawn(existsSync(name) ? resolve(name) : name, rest, { stdio: 'inherit' });
    const [status, signal] = (await once(child, 'exit')) as [number | null, string | null];
    if (signal !== null) note(`${name} was ended by ${signal}`);
    const successes = args['success-status'].length > 0 ? args['success-status'] : usual;
    if (status !== null && successes.includes(status)) return ExitCode.recorded;
    return args['guest-status'] && status !== null ? status : ExitCode.guestFailed;
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
}

const elfMagic = 0x7f454c46;

/** The first bytes of a file; undefined if it cannot be read, or is shorter. */
function startOf(path: string): Buffer | undefined {
  try {
    const { bytes = [] } = headOf(path) ?? {};
    return bytes.length < 20 ? undefined : Buffer.from(bytes);
  } catch {
    return undefined;
  }
}

export function isElf(path: string): boolean {
  return startOf(path)?.readUInt32BE(0) === elfMagic;
}

/** A flat binary, or a compressed kernel. */
function isOtherThanElf(path: string): boolean {
  const head = startOf(path);
  return head !== undefined && head.readUInt32BE(0) !== elfMagic;
}

/** `e_machine` of an ELF of 64 bits, little-endian; undefined for other files. */
function machineOf(path: string): number | undefined {
  const head = startOf(path);
  const isElf = head?.readUInt32BE(0) === elfMagic && head[4] === 2 && head[5] === 1;
  return isElf ? head.readUInt16LE(18) : undefined;
}

/** A text, a script, a flat binary, or nothing at all. */
function noProgram(path: string): RsptraceError {
  if (!existsSync(path)) return new RsptraceError('ELF_UNREADABLE', `there is no file ${path}`);
  return new RsptraceError('RUN_NO_ELF', `${path} is no ELF of 64 bits, so it is neither a program nor a kernel`, {
    hint: `of a program name the file that the compiler has made: rsptrace run ./program. If ${basename(path)} starts QEMU, name what it starts instead: rsptrace run kernel.elf -- qemu-system-...`,
  });
}

/**
 * QEMU loads a kernel's ELF at the physical addresses of its segments, and goes on in silence if no memory is there.
 * Throws `RUN_NOT_LOADABLE`.
 */
export function verifyLoadable({ path, segments, machine }: ElfFile, command: readonly string[]): void {
  const [qemu = '', ...args] = command;
  const kernel = qemuOptions(args).findLast(({ name }) => name === 'kernel')?.value;
  if (!/^qemu-system-/.test(basename(qemu)) || kernel === undefined || !isSameFile(kernel, path)) return;
  const loadedAt = (physical: bigint): bigint => architectureOf(machine)?.loadAddress?.(physical) ?? physical;
  const far = segments.find((one) => one.type === PT_LOAD && one.fileSize > 0 && loadedAt(one.physical) >= noMemory);
  if (far === undefined) return;
  throw new RsptraceError(
    'RUN_NOT_LOADABLE',
    `QEMU cannot boot ${path}: it loads the code at its physical address, ${hex(far.physical)}, where no machine has memory`,
    {
      hint: `the kernel's build makes a flat binary of it: rust-objcopy -O binary ${basename(path)} kernel.bin, then rsptrace run ${basename(path)} -- ${basename(qemu)} ... -kernel kernel.bin. Or give its linker script load addresses: AT(...)`,
    },
  );
}

/** QEMU's options that name what it boots, or the state that it goes on from. */
const boots =
  /^(kernel|bios|drive|hd[a-d]|cdrom|fd[ab]|sd|mtdblock|pflash|blockdev|device|nic|netdev|incoming|loadvm|machine|M)$/;

/** A sentence if nothing in QEMU's command leads to the program: the machine would stand idle for ever. */
export function nothingToBoot(path: string, command: readonly string[]): readonly string[] {
  const [qemu = '', ...args] = command;
  if (!/^qemu-system-/.test(basename(qemu))) return [];
  const found = qemuOptions(args).some(({ name, value }) => {
    if (name === 'M' || name === 'machine') return /pflash|firmware|kernel/.test(value);
    return boots.test(name) && value !== 'none';
  });
  return found ? [] : [`QEMU is given nothing to boot: -kernel ${basename(path)} is missing among its arguments`];
}

const PT_LOAD = 1;
/** Physical addresses have 56 bits on riscv64 (privileged ISA, 12.4), and at most 52 on x86_64. */
const noMemory = 1n << 56n;

function isSameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}

function noElf(why: string): RsptraceError {
  return new RsptraceError('RUN_NO_ELF', `it is not said which ELF runs: ${why}`, {
    hint: 'name the linked kernel before --: rsptrace run kernel.elf -- qemu-system-..., or have -kernel kernel.elf among its arguments',
  });
}
