// When a kernel's final page table is in use.
import type { Architecture } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';

const PF_X = 1;
const PT_LOAD = 1;

/**
 * Whether a program's code can turn paging on; else its addresses stay physical. Undefined if page tables are not
 * known.
 */
export function turnsPagingOn(elf: ElfFile, { addressSpaces }: Architecture): boolean | undefined {
  if (!addressSpaces) return undefined;
  const { turnedOnBy } = addressSpaces;
  if (turnedOnBy === 'always') return true;
  return elf.segments.some((segment) => {
    if (segment.type !== PT_LOAD || (segment.flags & PF_X) === 0) return false;
    const code = elf.bytesAt(segment.address, segment.fileSize);
    return code !== undefined && turnedOnBy(code);
  });
}

/**
 * An address at which the final page table is in use, for known kernels. Linux calls `rest_init` at the end of its
 * boot (init/main.c), after setup_vm_final and cleanup_highmap. Undefined for others; there the first hit of a probe
 * may tell.
 */
export function pagingIsFinal(elf: ElfFile): Addr | undefined {
  return elf.symbols.named('rest_init').find(({ type }) => type === 'function')?.address;
}
