import { architectureOf } from '../arch/index.js';
import type { ElfFile } from '../elf/index.js';

/** Linux gives a process the lower half of the addresses (Documentation/arch/x86/x86_64/mm.rst). */
const lowerHalf = 1n << 47n;

/**
 * A program that Linux starts, not a kernel: it has a loader, or the C library's start; else code of the lower half
 * that asks a kernel and is none (Go, no_std, -nostdlib).
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
