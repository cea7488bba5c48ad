import { type Addr, addr } from '../../base/addr.js';
import type { ElfFile } from '../../elf/index.js';
import type { Region } from './memory-image.js';

const PT_LOAD = 1;
const PF_W = 2;
/** Limit on a size, because a damaged header must not cause a read of a stub's whole address space. */
const MOST = 2 ** 30;

/** The program's writable segments with .bss: statics, and in most kernels the heap and the stacks. */
export function writableRegions(elf: ElfFile): Region[] {
  return elf.segments
    .filter(({ type, flags, memorySize }) => type === PT_LOAD && (flags & PF_W) !== 0 && memorySize > 0)
    .map(({ address, memorySize }) => ({ start: address, length: Math.min(memorySize, MOST) }));
}

/** The part of a stack below its pointer, down to the beginning of its section or symbol. */
export function deadStack(elf: ElfFile, stackPointer: Addr): Region[] {
  const section = elf.sections.find(
    ({ address, size }) => address !== 0n && stackPointer > address && stackPointer <= address + BigInt(size),
  );
  if (!section) return [];
  const symbol = elf.symbols.at(addr(stackPointer - 1n));
  const start = symbol && symbol.address > section.address ? symbol.address : section.address;
  return [{ start, length: Number(stackPointer - start) }];
}
