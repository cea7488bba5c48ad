import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { type CodeAddress, codePointers, type ElfFile, ET, Kept, KnownCode, lastNotAbove, SHF } from '../elf/index.js';
import { isLinux } from '../target/index.js';
import { CodeMap, executable } from '../target/unwind/index.js';
import { runAsLoaded } from './loaded-code.js';
import type { CodePiece } from './read-plan.js';
import { ReturnReaders } from './return-readers.js';
import { ShortBranches } from './short-branches.js';

/** Executable bytes that lie together, and a bit for each of them. */
interface Stretch {
  readonly low: CodeAddress;
  readonly bytes: Uint8Array;
  readonly marks: Marks;
}

/**
 * Where jumps, branches and calls lead, which addresses something keeps or makes, and where tables of distances from
 * their own first byte lead, as those of jumps do.
 */
interface Marks {
  readonly led: Uint8Array;
  readonly named: Uint8Array;
  readonly tabled: Uint8Array;
}

/** The name by which marks are kept: three columns a stretch. */
const MARKS = 'entries';

function keptMarks(elf: ElfFile): Marks[] | undefined {
  const columns = Kept.of(elf)?.read(MARKS);
  if (!columns?.every((column) => column instanceof Uint8Array)) return undefined;
  return Array.from({ length: Math.floor(columns.length / 3) }, (_, i) => {
    const [led, named, tabled] = columns.slice(3 * i, 3 * i + 3) as [Uint8Array, Uint8Array, Uint8Array];
    return { led, named, tabled };
  });
}

/** The most entries of one jump table. */
const mostEntries = 1 << 16;

const asLoaded = 'a hart that starts later may run it before its paging is on, where no trampoline is mapped';

/** Where no kernel is without paging. */
function isUpper(address: Addr): boolean {
  return address >> 63n !== 0n;
}

/** Marks of the last programs, by build id: an ELF is read once as linked and once more as loaded. */
const kept = new Map<string, readonly Marks[]>();
const mostKept = 4;
const made = new WeakMap<ElfFile, CodeEntries>();

/**
 * Where control may come into a program's text otherwise than by running on. Jumps, branches and calls lead there, and
 * so do symbols and addresses in data: tables of jumps, landing pads, labels whose address is taken. One pass over all
 * of it finds more than there is, and misses nothing. So what is free of it may be patched.
 */
export class CodeEntries {
  readonly #elf: ElfFile;
  readonly #arch: Architecture;
  readonly #stretches: readonly Stretch[];
  readonly #text: Span;
  #known: KnownCode | undefined;
  #readers: ReturnReaders | undefined;
  #loaded: ReadonlySet<CodeAddress> | undefined;
  readonly #short: ShortBranches;

  private constructor(elf: ElfFile, arch: Architecture) {
    this.#elf = elf;
    this.#arch = arch;
    this.#short = new ShortBranches(elf, arch);
    const found = stretchesOf(elf);
    const id = elf.buildId;
    const known = (id === undefined ? undefined : kept.get(id)) ?? keptMarks(elf);
    const isSame = known?.length === found.length && known.every(({ led }, i) => led.length === bitsFor(found[i]));
    const marks = isSame ? known : found.map((one) => ({ led: bits(one), named: bits(one), tabled: bits(one) }));
    this.#stretches = found.map((one, i) => ({ ...one, marks: marks[i] as Marks }));
    this.#text = {
      low: Math.min(...found.map(({ low }) => low)),
      high: Math.max(...found.map(({ low, bytes }) => low + bytes.length)),
    };
    if (isSame) return;
    this.#scan();
    Kept.of(elf)?.write(
      MARKS,
      marks.flatMap(({ led, named, tabled }) => [led, named, tabled]),
    );
    if (id === undefined) return;
    kept.set(id, marks);
    for (const [first] of kept) if (kept.size > mostKept) kept.delete(first);
  }

  /** The architecture must be prepared. Kept for each ELF. */
  static of(elf: ElfFile, arch: Architecture): CodeEntries {
    const entries = made.get(elf) ?? new CodeEntries(elf, arch);
    made.set(elf, entries);
    return entries;
  }

  /**
   * Why control may come into these bytes behind the first one, in words for the user.
   * @param own the function whose own short branches are known; undefined: the one around
   */
  into({ address, length }: CodePiece, own?: CodePiece): string | undefined {
    const low = this.#elf.codes.toCode(address);
    const symbol = this.#symbolIn(address, length);
    if (symbol !== undefined) return `${symbol} lies in the bytes that a patch would replace`;
    const stretch = this.#stretchAt(low);
    if (!stretch || !this.#arch.references) return undefined;
    for (let at = low - stretch.low + 1; at < low - stretch.low + length; at++) {
      if (has(stretch.marks.led, at)) return entered('a jump, branch or call', at + stretch.low - low);
      if (has(stretch.marks.named, at) || has(stretch.marks.tabled, at))
        return entered('an address that the program keeps', at + stretch.low - low);
    }
    return this.#shortInto(stretch, low - stretch.low, length, own);
  }

  /**
   * Why a function may run where it is loaded, in words for the user. A kernel that lies elsewhere begins there, also
   * on a hart that starts later. There nothing of a trampoline is mapped. Linux' own code for that is assembly.
   */
  unmapped(address: Addr): string | undefined {
    const { addressSpaces } = this.#arch;
    if (!addressSpaces || addressSpaces.alwaysPages || !isUpper(address) || isLinux(this.#elf)) return undefined;
    this.#loaded ??= runAsLoaded(this.#elf, this.#arch, this.#places());
    const code = CodeMap.of(this.#elf, undefined).functionAt(this.#elf.codes.toCode(address));
    return code && this.#loaded.has(code.low) ? asLoaded : undefined;
  }

  /** Code that has a name, or whose address the program keeps. */
  *#places(): Generator<Addr> {
    yield this.#elf.entry;
    for (const { address, type } of this.#elf.symbols) if (type !== 'object') yield address;
    for (const { low, marks } of this.#stretches)
      for (let at = 0; at < marks.named.length * 8; at++)
        if (has(marks.named, at)) yield this.#elf.codes.fromCode(low + at);
  }

  /**
   * Why these instructions must be run where they lie, in words for the user: something knows one of them by its
   * address, as a handler of faults does. A handler compares whole addresses, or distances from the entry itself. A
   * distance from a table's first byte is a place to jump to.
   * @param own the function whose labels count; undefined: the one around
   */
  known({ address, length }: CodePiece, own?: CodePiece): string | undefined {
    const low = this.#elf.codes.toCode(address);
    const stretch = this.#stretchAt(low);
    if (!stretch) return undefined;
    this.#known ??= new KnownCode(this.#elf, (code) => this.#stretchAt(code) !== undefined);
    const why = this.#known.in(low, low + length);
    if (why !== undefined) return why;
    const label = this.#labelIn(own ?? { address, length });
    const isNamed = label !== undefined || (own?.address !== address && has(stretch.marks.named, low - stretch.low));
    if (!isNamed) return undefined;
    const bytes = stretch.bytes.subarray(low - stretch.low, low - stretch.low + length);
    const access = this.#arch.codeFlow?.steps(bytes, address).find(({ accesses }) => accesses);
    return access && `${label ?? 'the program'} may know a load or store there by its address`;
  }

  /** A symbol in a function that is none of a function. */
  #labelIn({ address, length }: CodePiece): string | undefined {
    const { symbols } = this.#elf;
    for (let next = symbols.above(addOffset(address, -1)); next && next.address < address + BigInt(length); ) {
      const label = symbols.allAt(next.address).find(({ type, size }) => type === 'other' && size === 0);
      if (label) return label.name;
      next = symbols.above(next.address);
    }
    return undefined;
  }

  /** A call instruction of a function, or behind a label, leads there. */
  isCalled(address: Addr): boolean {
    const { references } = this.#arch;
    const { symbols } = this.#elf;
    const low = this.#elf.codes.toCode(address);
    for (const { address: start, size, type } of symbols) {
      if (type === 'object' || this.#stretchAt(this.#elf.codes.toCode(start)) === undefined) continue;
      const length = size > 0 ? size : Number((symbols.above(start)?.address ?? start) - start);
      const code = this.#elf.bytesAt(start, length);
      // That has more than there is.
      if (!code || !references?.leave(code, this.#elf.codes.toCode(start)).calls.includes(low)) continue;
      const steps = this.#arch.codeFlow?.steps(code, start) ?? [];
      if (steps.some(({ kind, target }) => kind === 'call' && target === address)) return true;
    }
    return false;
  }

  /** Why the return address of the function there must not be replaced, in words for the user. */
  looksAtReturn(address: Addr): string | undefined {
    this.#readers ??= new ReturnReaders(this.#elf, this.#arch);
    return this.#readers.objection(address);
  }

  /** Keeps what took long to find, for the next start. */
  keep(): void {
    this.#readers?.keep();
    this.#short.keep();
  }

  #symbolIn(address: Addr, length: number): string | undefined {
    const { symbols } = this.#elf;
    const end = addOffset(address, length);
    for (let next = symbols.above(address); next && next.address < end; next = symbols.above(next.address))
      if (next.type !== 'object') return next.name;
    return undefined;
  }

  /** Branches of one byte's distance: of neighbours, because those of the function itself are asked elsewhere. */
  #shortInto({ low, bytes }: Stretch, from: number, length: number, own: CodePiece | undefined): string | undefined {
    const candidates = this.#arch.references?.shortInto?.(bytes, from + 1, from + length) ?? [];
    if (candidates.length === 0) return undefined;
    const ownLow = own ? this.#elf.codes.toCode(own.address) : this.#short.hostAt(low + from)?.low;
    for (const at of candidates) {
      const isOwn = own
        ? low + at >= (ownLow as number) && low + at < (ownLow as number) + own.length
        : this.#short.hostAt(low + at)?.low === ownLow;
      if (isOwn && ownLow !== undefined) continue;
      const to = this.#short.from(low + at);
      // Bytes of no known function may be code of one.
      if (to !== 'unknown' && !(to !== undefined && to > low + from && to < low + from + length)) continue;
      return 'a short branch of its neighbour leads into the bytes that a patch would replace';
    }
    return undefined;
  }

  #stretchAt(code: CodeAddress): Stretch | undefined {
    return this.#stretches.find(({ low, bytes }) => code >= low && code < low + bytes.length);
  }

  #scan(): void {
    const { references } = this.#arch;
    if (!references) return;
    const elf = this.#elf;
    const bases = new Set<CodeAddress>();
    const isFixed = elf.type === ET.EXEC;
    for (const stretch of this.#stretches) {
      const { low, bytes } = stretch;
      elf.budget.spend(bytes.length, 'the program text');
      references.scan(bytes, {
        ...{ at: low, text: this.#text, isFixed, starts: this.#startsIn(stretch) },
        leads: (to) => this.#mark('led', to, stretch),
        names: (address) => {
          if (!this.#mark('named', address, stretch)) bases.add(address);
        },
        holds: (address) => this.#mark('named', address, stretch),
      });
    }
    codePointers(elf, (address) => this.#mark('named', address));
    this.#tables([...bases].sort((a, b) => a - b));
  }

  *#startsIn({ low, bytes }: Stretch): Generator<number> {
    for (const { address, type } of this.#elf.symbols) {
      const at = this.#elf.codes.toCode(address) - low;
      if (type === 'function' && at > 0 && at < bytes.length) yield at;
    }
  }

  /** Tables of distances from their own first byte, whose address code makes. */
  #tables(bases: readonly CodeAddress[]): void {
    for (const section of this.#elf.sections) {
      const low = this.#elf.codes.toCode(section.address);
      const first = lastNotAbove(bases, bases.length, low - 1) + 1;
      if ((section.flags & SHF.ALLOC) === 0 || !((bases[first] as number) < low + section.size)) continue;
      const bytes = this.#elf.rawSection(section);
      if (!bytes) continue;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let i = first; (bases[i] as number) < low + section.size; i++) {
        const base = bases[i] as number;
        const end = Math.min(bases[i + 1] ?? Number.POSITIVE_INFINITY, low + bytes.length, base + 4 * mostEntries);
        for (let at = base; at + 4 <= end; at += 4)
          if (!this.#mark('tabled', base + view.getInt32(at - low, true))) break;
      }
    }
  }

  /** @returns whether it lies in the text */
  #mark(kind: keyof Marks, code: CodeAddress, near?: Stretch): boolean {
    if (!(code >= this.#text.low && code < this.#text.high)) return false;
    const isIn = ({ low, bytes }: Stretch): boolean => code >= low && code < low + bytes.length;
    const stretch = near && isIn(near) ? near : this.#stretches.find(isIn);
    if (!stretch) return false;
    const at = code - stretch.low;
    const marks = stretch.marks[kind];
    marks[at >> 3] = (marks[at >> 3] as number) | (1 << (at & 7));
    return true;
  }
}

interface Span {
  readonly low: CodeAddress;
  readonly high: CodeAddress;
}

function entered(what: string, offset: number): string {
  return `${what} leads to byte ${offset} of those that a patch would replace`;
}

function stretchesOf(elf: ElfFile): Omit<Stretch, 'marks'>[] {
  return executable(elf).flatMap(({ low, high }) => {
    const bytes = elf.bytesAt(elf.codes.fromCode(low), high - low);
    return bytes ? [{ low, bytes }] : [];
  });
}

function bitsFor({ bytes }: Omit<Stretch, 'marks'> = { low: 0, bytes: new Uint8Array(0) }): number {
  return (bytes.length + 7) >> 3;
}

function bits(stretch: Omit<Stretch, 'marks'>): Uint8Array {
  return new Uint8Array(bitsFor(stretch));
}

function has(marks: Uint8Array, at: number): boolean {
  return (((marks[at >> 3] as number) >> (at & 7)) & 1) === 1;
}
