// When a kernel's final page table is in use.
import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';

/**
 * Whether a program's code can turn paging on; else its addresses stay physical. Undefined if page tables are not
 * known.
 */
export function turnsPagingOn(elf: ElfFile, { addressSpaces }: Architecture): boolean | undefined {
  if (!addressSpaces) return undefined;
  return addressSpaces.alwaysPages || tableChanges(elf, addressSpaces).length > 0;
}

/** More places than kernels have: a breakpoint at each costs time. */
const mostPlaces = 32;

/** Where a program goes on when it has turned paging on, or has changed its table. */
export interface TablePlace {
  /** Where it is linked; and where it is loaded, if that is elsewhere: code that runs before paging runs there. */
  readonly addresses: readonly Addr[];
}

/** All of them, in the order of their addresses. Empty if there is none, or too many. */
export function pageTableChanges(elf: ElfFile, { addressSpaces }: Architecture): readonly TablePlace[] {
  const places = addressSpaces ? tableChanges(elf, addressSpaces) : [];
  return places.length <= mostPlaces ? places : [];
}

function tableChanges(elf: ElfFile, spaces: NonNullable<Architecture['addressSpaces']>): TablePlace[] {
  return elf.codeParts().flatMap(({ address, physical, bytes }) => {
    const starts = address === physical ? [address] : [address, physical];
    return spaces.tableChanges(bytes).map((end) => ({ addresses: starts.map((start) => addOffset(start, end)) }));
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
