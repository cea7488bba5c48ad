import { architectureOf } from '../arch/index.js';
import { addr } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';

const PT_LOAD = 1;
const PT_INTERP = 3;
const PF_X = 1;
/** Linux gives a process the lower half of the addresses (Documentation/arch/x86/x86_64/mm.rst). */
const lowerHalf = 1n << 47n;

/**
 * A program that Linux starts, not a kernel: it has a loader, or the C library's start; else code of the lower half
 * that asks a kernel and is none (Go, no_std, -nostdlib).
 */
export function isLinuxProgram(elf: ElfFile): boolean {
  return (
    elf.segments.some(({ type }) => type === PT_INTERP) ||
    elf.has('.note.ABI-tag') ||
    elf.symbols.named('__libc_start_main').length > 0 ||
    asksKernel(elf)
  );
}

function asksKernel(elf: ElfFile): boolean {
  const isProgram = architectureOf(elf.machine)?.linux?.isProgram;
  const code = elf.segments.filter(({ type, flags }) => type === PT_LOAD && (flags & PF_X) !== 0);
  if (!isProgram || code.some(({ address }) => address >= lowerHalf)) return false;
  const bytes = code.map(({ address, fileSize }) => elf.bytesAt(addr(address), fileSize));
  return isProgram(Buffer.concat(bytes.filter((each) => each !== undefined)));
}
