// `rsptrace run` without an ELF: as cargo's runner, or with the ELF that QEMU loads.
import { closeSync, openSync, readSync } from 'node:fs';
import { basename } from 'node:path';
import { architectureOf } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import { qemuOptions } from '../facts/index.js';

/** What to trace, and how it is started. */
export interface RunTarget {
  readonly elf: string;
  readonly command: readonly string[];
  /** The command was made here. */
  readonly isOurs: boolean;
}

/**
 * The ELF and the command of `rsptrace run [ELF] -- COMMAND`. Without an ELF it is what QEMU's -kernel names; a command
 * that is an ELF itself, as cargo gives to a runner, gets a QEMU. Throws `RUN_NO_ELF`.
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
    throw new RsptraceError('USAGE', 'an argument is missing: kernel.elf', { hint: "try 'rsptrace --help'" });
  }
  const machine = machineOf(program);
  const start = machine === undefined ? undefined : architectureOf(machine)?.kernelCommand;
  if (start === undefined) throw noElf(`${program} is no ELF of a kernel that has a QEMU here`);
  const append = args.length === 0 ? [] : ['-append', args.join(' ')];
  return { elf: program, command: [...start, '-kernel', program, ...append], isOurs: true };
}

const elfMagic = 0x7f454c46;

/** The first bytes of a file; undefined if it cannot be read, or is shorter. */
function headOf(path: string): Buffer | undefined {
  const head = Buffer.alloc(20);
  try {
    const fd = openSync(path, 'r');
    try {
      return readSync(fd, head) < head.length ? undefined : head;
    } finally {
      closeSync(fd);
    }
  } catch {
    return undefined;
  }
}

/** A flat binary, or a compressed kernel. */
function isOtherThanElf(path: string): boolean {
  const head = headOf(path);
  return head !== undefined && head.readUInt32BE(0) !== elfMagic;
}

/** `e_machine` of an ELF of 64 bits, little-endian; undefined for other files. */
function machineOf(path: string): number | undefined {
  const head = headOf(path);
  const isElf = head?.readUInt32BE(0) === elfMagic && head[4] === 2 && head[5] === 1;
  return isElf ? head.readUInt16LE(18) : undefined;
}

function noElf(why: string): RsptraceError {
  return new RsptraceError('RUN_NO_ELF', `it is not said which ELF runs: ${why}`, {
    hint: 'name the linked kernel before --: rsptrace run kernel.elf -- qemu-system-..., or have -kernel kernel.elf among its arguments',
  });
}
