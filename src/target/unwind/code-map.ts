import type { CodeRange } from '../../arch/index.js';
import { addTo, madeOnce } from '../../base/made-once.js';
import type { DebugInfo } from '../../dwarf/index.js';
import { type CodeAddress, type ElfFile, type ElfSymbol, lastNotAbove, SHF } from '../../elf/index.js';

/** A function's code: its entry first, then the parts that the compiler put elsewhere. */
export interface FunctionCode {
  readonly low: CodeAddress;
  readonly ranges: readonly CodeRange[];
}

interface Span {
  readonly low: CodeAddress;
  readonly high: CodeAddress;
}

/** Bytes of a stub of an imported function, on all architectures that have such code. */
const STUB = 16;
/** The most bytes of one function: larger ones exist only in damaged files. */
const MAX_FUNCTION = 0x8_0000;

const known = new WeakMap<ElfFile, Map<DebugInfo | undefined, CodeMap>>();

/** Which function an address belongs to: from the symbols, or from the debug info if there are none. */
export class CodeMap {
  readonly #elf: ElfFile;
  readonly #debug: DebugInfo | undefined;
  readonly #code: readonly Span[];
  /** Stubs of imported functions, which have no symbols. */
  readonly #stubs: Span | undefined;
  readonly #starts: Float64Array;
  /** NaN for a symbol without a size: it reaches to the next one. */
  readonly #ends: Float64Array;
  /** The entry of the function whose cold part begins here. */
  readonly #coldOf = new Map<CodeAddress, CodeAddress>();
  readonly #coldParts = new Map<CodeAddress, CodeAddress[]>();
  readonly #functions = new Map<CodeAddress, FunctionCode | undefined>();

  /** One for all who ask about a program: a kernel has tens of thousands of functions. */
  static of(elf: ElfFile, debug: DebugInfo | undefined): CodeMap {
    const maps = madeOnce(known, elf, () => new Map<DebugInfo | undefined, CodeMap>());
    return madeOnce(maps, debug, () => new CodeMap(elf, debug));
  }

  private constructor(elf: ElfFile, debug: DebugInfo | undefined) {
    this.#elf = elf;
    this.#debug = debug;
    this.#code = executable(elf);
    const stubs = elf.sections.find(({ name }) => name === '.plt');
    const first = stubs && elf.codes.toCode(stubs.address);
    this.#stubs = stubs && this.#code.find(({ low }) => low === first);
    const [starts, sizes]: [CodeAddress[], number[]] = [[], []];
    const cold = new Map<string, CodeAddress>();
    let open = Number.NEGATIVE_INFINITY;
    for (const { address, size, name, type } of elf.symbols) {
      const low = elf.codes.toCode(address);
      if (type === 'object' || !this.isCode(low)) continue;
      if (name.includes('.cold') && !cold.has(name)) cold.set(name, low);
      // A label inside a function is no function.
      if (size === 0 && low < open) continue;
      if (type === 'function' || size > 0) open = Math.max(open, low + size);
      const last = starts.length - 1;
      if (starts[last] === low) sizes[last] = Math.max(size, sizes[last] as number);
      else sizes[starts.push(low) - 1] = size;
    }
    this.#starts = Float64Array.from(starts);
    this.#ends = Float64Array.from(sizes, (size, i) => (size > 0 ? (starts[i] as number) + size : Number.NaN));
    for (const [name, low] of cold) {
      const parent = /^(.*)\.cold(?:\.\d+)?$/.exec(name)?.[1];
      const entry = parent === undefined ? undefined : this.#named(parent);
      if (entry === undefined) continue;
      this.#coldOf.set(low, entry);
      addTo(this.#coldParts, entry, low);
    }
  }

  /** The first code of a name. */
  #named(name: string): CodeAddress | undefined {
    const { symbols, codes } = this.#elf;
    const is = ({ address, type }: ElfSymbol): boolean => type !== 'object' && this.isCode(codes.toCode(address));
    const found = symbols.named(name).find(is);
    return found && codes.toCode(found.address);
  }

  /** Inside an executable section or segment. */
  isCode(address: CodeAddress): boolean {
    return this.#code.some(({ low, high }) => address >= low && address < high);
  }

  /** The function that holds an address. */
  functionAt(address: CodeAddress): FunctionCode | undefined {
    const span = this.#spanAt(address);
    if (span === undefined) return undefined;
    const low = this.#coldOf.get(span.low) ?? span.low;
    if (!this.#functions.has(low)) this.#functions.set(low, this.#read(low));
    return this.#functions.get(low);
  }

  #read(low: CodeAddress): FunctionCode | undefined {
    const ranges: CodeRange[] = [];
    for (const part of [low, ...(this.#coldParts.get(low) ?? [])]) {
      const span = this.#spanAt(part);
      const start = this.#elf.codes.fromCode(part);
      const bytes = span && this.#elf.bytesAt(start, Math.min(span.high - part, MAX_FUNCTION));
      if (bytes !== undefined) ranges.push({ start, bytes });
    }
    return ranges.length === 0 ? undefined : { low, ranges };
  }

  #spanAt(address: CodeAddress): Span | undefined {
    const section = this.#code.find(({ low, high }) => address >= low && address < high);
    if (section === undefined) return undefined;
    let at = lastNotAbove(this.#starts, this.#starts.length, address);
    // Symbols may nest: the innermost one that reaches this far, not too far back.
    for (let back = 0; at >= 0 && back < 16; back++, at--) {
      const low = this.#starts[at] as number;
      const end = this.#ends[at] as number;
      const high = Number.isNaN(end) ? (this.#starts[at + 1] ?? section.high) : end;
      if (address < high && low >= section.low) return { low, high: Math.min(high, section.high) };
    }
    const { codes } = this.#elf;
    const known = this.#debug?.functionAt(codes.fromCode(address));
    if (known) return { low: codes.toCode(known.low), high: codes.toCode(known.high) };
    if (this.#stubs === undefined || address < this.#stubs.low || address >= this.#stubs.high) return undefined;
    const low = address - ((address - this.#stubs.low) % STUB);
    return { low, high: low + STUB };
  }
}

/** Where an ELF has code. */
export function executable(elf: ElfFile): Span[] {
  const span = (address: bigint, size: number): Span => {
    const low = elf.codes.toCode(address);
    return { low, high: low + size };
  };
  const sections = elf.sections.filter(({ flags, size }) => (flags & SHF.EXECINSTR) !== 0 && size > 0);
  if (sections.length > 0) return sections.map(({ address, size }) => span(address, size));
  return elf.code.map(({ address, fileSize }) => span(address, fileSize));
}
