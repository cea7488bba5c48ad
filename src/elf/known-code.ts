// Instructions whose own addresses a table of the program has, because something acts on them where they lie.
//
//   __ex_table           Linux, include/asm-generic/extable.h, arch/*/include/asm/extable.h: int insn, fixup, data, each
//                        a distance from itself; before 5.16 no data on AArch64, and two addresses on RISC-V
//   __jump_table         Linux, include/linux/jump_label.h: int code, target, each a distance from itself; long key
//   .static_call_sites   Linux, include/linux/static_call_types.h: int addr, key, each a distance from itself
//   __rseq_cs            include/uapi/linux/rseq.h: u32 version, flags; u64 start_ip, post_commit_offset, abort_ip
//
// Linux' tables lie between two symbols; a section of the name is taken where these are missing. How wide their entries
// are differs, so every word that leads into code counts. So do those where a fault goes on, and where a key leads.
import { type Addr, addOffset } from '../base/addr.js';
import { firstWhere } from '../base/search.js';
import type { CodeAddress } from './code-address.js';
import type { ElfFile } from './elf.js';

interface KnownRange {
  readonly low: CodeAddress;
  readonly high: CodeAddress;
  /** In words for the user. */
  readonly why: string;
}

interface Table {
  readonly section: string;
  readonly symbols: readonly [first: string, end: string];
  /** Bytes at each address that belong to it. */
  readonly bytes: number;
  readonly why: string;
}

const tables: readonly Table[] = [
  {
    ...{ section: '__ex_table', symbols: ['__start___ex_table', '__stop___ex_table'], bytes: 1 },
    why: "the kernel's table of exceptions has the address of an instruction",
  },
  {
    ...{ section: '__jump_table', symbols: ['__start___jump_table', '__stop___jump_table'], bytes: 4 },
    why: 'the kernel itself rewrites an instruction (a static key)',
  },
  {
    ...{ section: '.static_call_sites', symbols: ['__start_static_call_sites', '__stop_static_call_sites'] },
    ...{ bytes: 5, why: 'the kernel itself rewrites an instruction (a static call)' },
  },
];

/** All of a program. */
export class KnownCode {
  /** In order of address. */
  readonly #ranges: readonly KnownRange[];
  readonly #longest: number;

  constructor(elf: ElfFile, isCode: (address: CodeAddress) => boolean) {
    const found = tables.flatMap((table) => entriesOf(elf, table, isCode));
    found.push(...restartable(elf));
    this.#ranges = found.sort((a, b) => a.low - b.low);
    this.#longest = found.reduce((most, { low, high }) => Math.max(most, high - low), 0);
  }

  /** Why the first that lies between these addresses, or partly, is known; undefined if there is none. */
  in(low: CodeAddress, high: CodeAddress): string | undefined {
    const first = firstWhere(this.#ranges.length, (at) => (this.#ranges[at] as KnownRange).low > low - this.#longest);
    for (let i = first; i < this.#ranges.length; i++) {
      const one = this.#ranges[i] as KnownRange;
      if (one.low >= high) return undefined;
      if (one.high > low) return one.why;
    }
    return undefined;
  }
}

function entriesOf(
  elf: ElfFile,
  { section, symbols, bytes: length, why }: Table,
  isCode: (address: CodeAddress) => boolean,
): KnownRange[] {
  const where = between(elf, symbols) ?? elf.sections.find(({ name, size }) => name === section && size > 0);
  const bytes = where && elf.bytesAt(where.address, where.size);
  if (!where || !bytes) return [];
  elf.budget.spend(bytes.length, section);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = elf.codes.toCode(where.address);
  const lows: CodeAddress[] = [];
  for (let at = 0; at + 4 <= view.byteLength; at += 4) {
    lows.push(start + at + view.getInt32(at, true));
    if (at % 8 === 0 && at + 8 <= view.byteLength)
      lows.push(elf.codes.ofFile(view.getUint32(at, true), view.getUint32(at + 4, true)));
  }
  return lows.filter(isCode).map((low) => ({ low, high: low + length, why }));
}

function between(
  elf: ElfFile,
  [first, end]: readonly [string, string],
): { readonly address: Addr; readonly size: number } | undefined {
  const [low, high] = [elf.symbols.named(first)[0]?.address, elf.symbols.named(end)[0]?.address];
  return low !== undefined && high !== undefined && high > low ? { address: low, size: Number(high - low) } : undefined;
}

/** Sequences that the kernel restarts if it interrupts them inside. */
function restartable(elf: ElfFile): KnownRange[] {
  return elf.sections
    .filter(({ name }) => name === '__rseq_cs')
    .flatMap(({ address, size }) =>
      Array.from({ length: Math.floor(size / 32) }, (_, index): KnownRange[] => {
        const bytes = elf.bytesAt(addOffset(address, index * 32), 32);
        if (!bytes) return [];
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        const low = elf.codes.ofMemory(view.getUint32(8, true), view.getUint32(12, true));
        const why = 'the kernel restarts a sequence of instructions that is interrupted there (rseq)';
        return [{ low, high: low + view.getUint32(16, true), why }];
      }).flat(),
    );
}
