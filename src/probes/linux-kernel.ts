import type { ElfFile } from '../dwarf/index.js';

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

function isLinux(elf: ElfFile): boolean {
  return ['start_kernel', 'rest_init'].every((name) => elf.symbols.named(name).some(({ type }) => type === 'function'));
}
