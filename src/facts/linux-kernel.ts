// What of Linux is not to be had from an ELF alone. It is known by the functions that begin its boot and end it.
import type { Addr } from '../base/addr.js';
import { type DebugInfo, layoutOf } from '../dwarf/index.js';
import { btfMember, type ElfFile } from '../elf/index.js';

/**
 * Whether a program changes its own code as it runs, so that its ELF does not tell what stands at a probe. Linux does: its tracers and static
 * keys turn calls and jumps at the begin of functions and behind calls into nops and back, alternatives replace what the processor can do better.
 */
export function changesItsCode(elf: ElfFile): boolean {
  return isLinux(elf);
}

/**
 * How large the stacks of a program's threads are, where that is known: they lie at multiples of it then. In 64-bit Linux THREAD_SIZE is
 * 16 KiB, of tasks and of interrupts (arch/x86/include/asm/page_64_types.h, arch/riscv/include/asm/thread_info.h).
 */
export function stackBytes(elf: ElfFile): number | undefined {
  return isLinux(elf) ? 0x4000 : undefined;
}

/**
 * Whether a Linux that is started from a bzImage will choose itself where it runs, which no symbol tells: its decompressor does so
 * (CONFIG_RANDOMIZE_BASE) unless its command line has the word `nokaslr` (arch/x86/boot/compressed/kaslr.c).
 */
export function choosesItsPlace(elf: ElfFile, commandLine: string): boolean {
  const words = commandLine.trim().split(/\s+/);
  return isLinux(elf) && elf.symbols.named('kaslr_get_random_long').length > 0 && !words.includes('nokaslr');
}

/**
 * Where riscv's Linux has the number of the CPU that a task runs on, in bytes from `tp`, which points to the task in the whole kernel
 * (arch/riscv/include/asm/current.h; the first member of `task_struct` is `thread_info`). Undefined where neither BTF nor DWARF tells.
 */
export function cpuInTask(elf: ElfFile, debug: DebugInfo | undefined): number | undefined {
  const section = elf.section('.BTF');
  const told = section && btfMember(section, elf.budget, 'task_struct', ['thread_info', 'cpu']);
  if (told !== undefined) return told;
  const [info, ...others] = debug?.typesNamed('thread_info') ?? [];
  return info && others.length === 0 ? layoutOf(info).members.find(({ name }) => name === 'cpu')?.offset : undefined;
}

/** Functions of a Linux that it uses for as long as it runs; none of another program. */
export function landmarks(elf: ElfFile): Addr[] {
  if (!isLinux(elf)) return [];
  const names = ['schedule', 'kernel_clone', 'do_exit', 'vfs_read'];
  return names.flatMap((name) => elf.symbols.named(name).map(({ address }) => address));
}

export function isLinux(elf: ElfFile): boolean {
  return ['start_kernel', 'rest_init'].every((name) => elf.symbols.named(name).some(({ type }) => type === 'function'));
}
