// Facts about Linux that an ELF alone does not give. Linux is recognised by the functions that begin and end its
// boot.

import { architectureOf } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { type DebugInfo, layoutOf } from '../dwarf/index.js';
import { btfMember, type ElfFile } from '../elf/index.js';

/**
 * Whether a program changes its own code as it runs, so that its ELF does not give the code at a probe. Linux does.
 * Its tracers and static keys turn calls and jumps into nops and back, at the beginning of functions and behind
 * calls. Its alternatives replace instructions that the processor can do better.
 */
export function changesItsCode(elf: ElfFile): boolean {
  return isLinux(elf);
}

/**
 * How large the stacks of a program's threads are, if that is known: then they lie at multiples of that size. In
 * 64-bit Linux THREAD_SIZE is 16 KiB, for tasks and interrupts (arch/x86/include/asm/page_64_types.h,
 * arch/riscv/include/asm/thread_info.h).
 */
export function stackBytes(elf: ElfFile): number | undefined {
  return isLinux(elf) ? 0x4000 : undefined;
}

/**
 * Whether a Linux that is started from a bzImage will itself choose its address, which no symbol says. Its
 * decompressor does so (CONFIG_RANDOMIZE_BASE) unless its command line has the word `nokaslr`
 * (arch/x86/boot/compressed/kaslr.c).
 */
export function choosesItsPlace(elf: ElfFile, commandLine: string): boolean {
  const words = commandLine.trim().split(/\s+/);
  return isLinux(elf) && elf.symbols.named('kaslr_get_random_long').length > 0 && !words.includes('nokaslr');
}

/**
 * Offset from `tp` to the number of the CPU that a task runs on, in riscv's Linux. In the whole kernel `tp` points to
 * the task (arch/riscv/include/asm/current.h; the first member of `task_struct` is `thread_info`). Undefined if
 * neither BTF nor DWARF has it.
 */
export function cpuInTask(elf: ElfFile, debug: DebugInfo | undefined): number | undefined {
  return inTask(elf, ['thread_info', 'cpu']) ?? memberOf(debug, 'thread_info', 'cpu');
}

/**
 * Offset of a member of Linux' `task_struct`, to which `current` points. Undefined if neither BTF nor DWARF has it, or
 * the program is not Linux.
 */
export function memberOfTask(elf: ElfFile, debug: DebugInfo | undefined, member: string): number | undefined {
  return isLinux(elf) ? (inTask(elf, [member]) ?? memberOf(debug, 'task_struct', member)) : undefined;
}

function inTask(elf: ElfFile, path: readonly string[]): number | undefined {
  const section = elf.section('.BTF');
  return section && btfMember(section, elf.budget, 'task_struct', path);
}

function memberOf(debug: DebugInfo | undefined, struct: string, member: string): number | undefined {
  const [type, ...others] = debug?.typesNamed(struct) ?? [];
  return type && others.length === 0 ? layoutOf(type).members.find(({ name }) => name === member)?.offset : undefined;
}

/** Functions that Linux uses for as long as it runs, and that no other program has. */
export function landmarks(elf: ElfFile): Addr[] {
  if (!isLinux(elf)) return [];
  // The first: a kernel that moved upwards by less than its size has nothing there.
  const names = ['_stext', 'schedule', 'kernel_clone', 'do_exit', 'vfs_read'];
  return names.flatMap((name) => elf.symbols.named(name).map(({ address }) => address));
}

export function isLinux(elf: ElfFile): boolean {
  return ['start_kernel', 'rest_init'].every((name) => elf.symbols.named(name).some(({ type }) => type === 'function'));
}

/** Linux gives a process the lower half of the addresses (Documentation/arch/x86/x86_64/mm.rst). */
const lowerHalf = 1n << 47n;

/**
 * A program that Linux starts, not a kernel: it has a loader, or the C library's start. Else (Go, no_std, -nostdlib) it
 * is code of the lower half that asks a kernel.
 */
export function isLinuxProgram(elf: ElfFile): boolean {
  return (
    elf.hasInterpreter ||
    elf.has('.note.ABI-tag') ||
    elf.symbols.named('__libc_start_main').length > 0 ||
    asksKernel(elf)
  );
}

function asksKernel(elf: ElfFile): boolean {
  const isProgram = architectureOf(elf.machine)?.linux?.isProgram;
  if (!isProgram || elf.code.some(({ address }) => address >= lowerHalf)) return false;
  return isProgram(Buffer.concat(elf.codeParts().map(({ bytes }) => bytes)));
}
