// Debian's own Linux (`.cache/linux`, see scripts/test) with a program of ours in an initial RAM disk, and a QEMU plugin that counts.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { scratchFolder } from '../command.js';
import { type InstructionCounts, instructionCounts } from '../instruction-counts.js';
import { writeKernelElf } from './kernel-elf.js';

export interface LinuxGuest extends InstructionCounts {
  /** The kernel's ELF: code, symbols, BTF; no DWARF. */
  readonly elf: string;
  /** argv that boots it; `words` go behind the kernel's command line. */
  command(...words: string[]): string[];
}

const root = resolve(import.meta.dirname, '../../..');

export type LinuxArch = keyof typeof kernels;

/** Of each: the image, its machine, and the console. */
const kernels = {
  riscv64: { image: 'riscv64', machine: ['qemu-system-riscv64', '-M', 'virt'], console: 'ttyS0' },
  x86_64: { image: 'amd64', machine: ['qemu-system-x86_64'], console: 'ttyS0' },
  aarch64: {
    image: 'arm64',
    machine: ['qemu-system-aarch64', '-M', 'virt', '-cpu', 'cortex-a72'],
    console: 'ttyAMA0',
  },
} as const;

export function linuxGuest(
  t: { teardown: (fn: () => void) => void },
  arch: LinuxArch,
  harts = 1,
  load: 'calls' | 'script' | 'counts' = 'calls',
): LinuxGuest {
  const { image: name, machine, console } = kernels[arch];
  const image = join(root, '.cache/linux', name);
  if (!existsSync(image)) throw new Error(`${image} is missing: scripts/test unpacks it`);
  const folder = scratchFolder(t);
  const file = (name: string): string => join(folder, name);
  copyFileSync(kernelElf(image), file('vmlinux'));
  writeFileSync(file('initrd'), initialDisk(load === 'calls' ? [assembledInit(arch, file)] : withShell(arch, load)));
  return {
    elf: file('vmlinux'),
    command: (...words) => [
      ...[...machine, '-smp', `${harts}`, '-m', '256', '-nographic', '-nic', 'none', '-no-reboot'],
      ...['-kernel', image, '-initrd', file('initrd'), '-append', [`console=${console} panic=-1`, ...words].join(' ')],
    ],
    ...instructionCounts(folder),
  };
}

/** ELFs that were made, by image: its symbols alone take seconds to find. */
const made = new Map<string, string>();

function kernelElf(image: string): string {
  const known = made.get(image);
  if (known !== undefined) return known;
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-test-'));
  process.once('exit', () => rmSync(folder, { recursive: true }));
  const elf = join(folder, 'vmlinux');
  writeKernelElf(readFileSync(image), elf);
  made.set(image, elf);
  return elf;
}

interface DiskFile {
  readonly name: string;
  readonly data: Buffer;
}

/** `init-*.s`: a known number of system calls. */
function assembledInit(arch: string, file: (name: string) => string): DiskFile {
  const prefix = arch === 'x86_64' ? '' : `${arch}-linux-gnu-`;
  execFileSync(`${prefix}as`, ['-o', file('init.o'), join(import.meta.dirname, `init-${arch}.s`)]);
  execFileSync(`${prefix}ld`, ['-o', file('init'), file('init.o')]);
  return { name: 'init', data: readFileSync(file('init')) };
}

/** `script.sh` or `counts.sh`, for Debian's busybox. */
function withShell(arch: string, load: string): DiskFile[] {
  const busybox = join(root, '.cache/linux', `busybox-${arch}`);
  if (!existsSync(busybox)) throw new Error(`${busybox} is missing: scripts/equality --kernels unpacks it`);
  return [
    { name: 'bin/busybox', data: readFileSync(busybox) },
    { name: 'init', data: readFileSync(join(import.meta.dirname, `${load}.sh`)) },
  ];
}

/** Linux, Documentation/driver-api/early-userspace/buffer-format.rst: "newc". */
function initialDisk(files: readonly DiskFile[]): Buffer {
  let inode = 1;
  const entry = (name: string, mode: number, data: Buffer, device: readonly [number, number] = [0, 0]): Buffer => {
    const fields = [inode++, mode, 0, 0, 1, 0, data.length, 0, 0, ...device, name.length + 1, 0];
    const head = Buffer.from(`070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${name}\0`);
    return Buffer.concat([head, Buffer.alloc(-head.length & 3), data, Buffer.alloc(-data.length & 3)]);
  };
  const none = Buffer.alloc(0);
  return Buffer.concat([
    ...['dev', 'bin', 'proc', 'tmp'].map((name) => entry(name, 0o40755, none)),
    ...Object.entries({ console: [5, 1], null: [1, 3], zero: [1, 5] } as const).map(([name, device]) =>
      entry(`dev/${name}`, 0o20600, none, device),
    ),
    ...files.map(({ name, data }) => entry(name, 0o100755, data)),
    entry('TRAILER!!!', 0, none),
  ]);
}
