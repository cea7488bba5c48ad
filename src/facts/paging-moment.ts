// When a kernel's final page table is in use.
import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
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
    return code !== undefined && turnedOnBy(code).length > 0;
  });
}

/** More places than kernels have: a breakpoint at each costs time. */
const mostPlaces = 16;

/**
 * Where a program goes on when it has turned paging on, or has changed its table. That is behind each such instruction
 * of code that runs at the same addresses before and after. Empty if there is none, or too many.
 */
export function pagingTurnedOnAt(elf: ElfFile, { addressSpaces }: Architecture): readonly Addr[] {
  const turnedOnBy = addressSpaces?.turnedOnBy;
  if (turnedOnBy === undefined || turnedOnBy === 'always') return [];
  const places = elf.segments.flatMap(({ type, flags, address, physical, fileSize }) => {
    if (type !== PT_LOAD || (flags & PF_X) === 0 || address !== physical) return [];
    const code = elf.bytesAt(address, fileSize);
    return code ? turnedOnBy(code).map((end) => addOffset(address, end)) : [];
  });
  return places.length <= mostPlaces ? places : [];
}

/**
 * An address at which the final page table is in use, for known kernels. Linux calls `rest_init` at the end of its
 * boot (init/main.c), after setup_vm_final and cleanup_highmap. Undefined for others; there the first hit of a probe
 * may tell.
 */
export function pagingIsFinal(elf: ElfFile): Addr | undefined {
  return elf.symbols.named('rest_init').find(({ type }) => type === 'function')?.address;
}
