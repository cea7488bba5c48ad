import type { FileBytes } from './file-bytes.js';
import { type ElfSection, isAllocated, SHF, SHT } from './headers.js';

const SHF_TLS = 0x400;
const PAGE = 0x1000;
/** No object fills an address space. */
const MOST_ADDRESSES = 2 ** 40;

/** What a segment is for, by the flags of its sections; and its own flags: PF_R with PF_X or PF_W. */
const kinds = [
  [SHF.EXECINSTR, 5],
  [0, 4],
  [SHF.WRITE, 6],
] as const;

/** A part of memory with the sections of one kind: a segment. */
export interface Region {
  readonly sections: readonly ElfSection[];
  readonly flags: number;
  readonly start: number;
  readonly size: number;
  /** What the file has of it; zeros follow. */
  readonly fileSize: number;
}

/**
 * Where the sections of an object file would be: code first, `.text` at 0, then constants, then variables. The same of
 * `.init*` follows. Each kind has pages of its own. A thread-local section's address is its place in a thread's block.
 */
export function objectLayout(
  file: FileBytes,
  sections: readonly ElfSection[],
): { readonly regions: readonly Region[]; readonly addresses: Float64Array } {
  const addresses = new Float64Array(sections.length);
  const regions: Region[] = [];
  const place = (those: readonly ElfSection[], start: number): number => {
    let next = start;
    for (const { index, size, align, name } of those) {
      addresses[index] = aligned(next, Math.min(align, PAGE));
      next = (addresses[index] as number) + size;
      if (!(next < MOST_ADDRESSES)) throw file.damaged(`its section ${name} has ${size} bytes`);
    }
    return next;
  };
  const isLocal = ({ flags }: ElfSection): boolean => (flags & SHF_TLS) !== 0;
  const shared = sections.filter((one) => isAllocated(one) && !isLocal(one));
  for (const isInit of [false, true]) {
    for (const [kind, flags] of kinds) {
      const own = shared.filter((one) => kindOf(one) === kind && one.name.startsWith('.init') === isInit);
      own.sort((a, b) => Number(b.name === '.text') - Number(a.name === '.text'));
      const start = aligned(
        regions.reduce((end, one) => Math.max(end, one.start + one.size), 0),
        PAGE,
      );
      const end = place(own, start);
      const inFile = own.filter(({ type }) => type !== SHT.NOBITS);
      const fileEnd = inFile.reduce((most, one) => Math.max(most, (addresses[one.index] as number) + one.size), start);
      if (end > start) regions.push({ sections: own, flags, start, size: end - start, fileSize: fileEnd - start });
    }
  }
  // Zeros come last in it.
  const local = sections.filter(isLocal);
  local.sort((a, b) => Number(a.type === SHT.NOBITS) - Number(b.type === SHT.NOBITS));
  place(local, 0);
  return { regions, addresses };
}

function kindOf({ flags }: ElfSection): number {
  return (flags & SHF.EXECINSTR) === 0 ? flags & SHF.WRITE : SHF.EXECINSTR;
}

function aligned(at: number, to: number): number {
  return to > 1 ? Math.ceil(at / to) * to : at;
}
