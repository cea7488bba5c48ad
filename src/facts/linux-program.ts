import type { ElfFile } from '../elf/index.js';

const PT_INTERP = 3;

/** A program that Linux starts, not a kernel: it has a loader, or the C library's start. */
export function isLinuxProgram(elf: ElfFile): boolean {
  return (
    elf.segments.some(({ type }) => type === PT_INTERP) ||
    elf.has('.note.ABI-tag') ||
    elf.symbols.named('__libc_start_main').length > 0
  );
}
