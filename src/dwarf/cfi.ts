import { type Addr, hex } from '../base/addr.js';
import type { Budget } from '../base/budget.js';
import { ByteReader } from '../base/byte-reader.js';
import { isDamage, messageOf } from '../base/errors.js';
import { madeOnce } from '../base/made-once.js';
import type { UnwindRow } from '../base/unwind-row.js';
import { type CodeAddress, type CodeSpace, type ElfFile, lastNotAbove, signedWord } from '../elf/index.js';
import { DW_EH_PE } from './cfi-codes.js';
import { CfiSection, type Fde, rawPointer } from './cfi-entries.js';
import { CfiTable } from './cfi-program.js';

// Where exceptions come back into a function: the call sites of its language's data (.gcc_except_table), which GCC and
// LLVM write alike for every language (LSB core specification, "Exception Frames"; GCC's unwind-pe.h):
//
//   pads' base: encoding (1), a pointer unless it is omitted | types: encoding (1), their distance (uleb) unless omitted |
//   call sites: encoding (1) | their length (uleb) | each: start, length, pad (encoded numbers) | action (uleb)
/**
 * The landing pads of a function. Undefined if they cannot be read: data that is damaged, of another kind, or of which
 * a call site lies outside of the function.
 */
function landingPads(elf: ElfFile, fde: Fde): readonly CodeAddress[] | undefined {
  try {
    const at = fde.section.lsda(fde);
    return at === undefined ? [] : read(elf, at, fde);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return undefined;
  }
}

function read(elf: ElfFile, at: CodeAddress, { low, high }: Fde): readonly CodeAddress[] | undefined {
  const section = elf.sections.find(({ address, size }) => {
    const from = at - elf.codes.toCode(address);
    return address > 0n && from >= 0 && from < size;
  });
  const bytes = section && elf.rawSection(section);
  if (!bytes) return undefined;
  const r = new ByteReader(bytes, section.name, at - elf.codes.toCode(section.address));
  // No compiler writes a base of its own where the pads are in the function.
  if (r.u8() !== DW_EH_PE.omit) return undefined;
  if (r.u8() !== DW_EH_PE.omit) r.uleb();
  const encoding = r.u8();
  const length = r.uleb();
  if (length > r.remaining) throw r.truncated('the call sites');
  const sites = r.at(r.offset, r.offset + length);
  elf.budget.spend(sites.remaining, section.name);
  const number = (): number => signedWord(...rawPointer(sites, encoding));
  const pads: CodeAddress[] = [];
  for (let before = 0; sites.remaining > 0; ) {
    const [start, size, pad] = [number(), number(), number()];
    sites.uleb();
    const end = start + size;
    if (!(start >= before && size >= 0 && low + end <= high && pad >= 0 && low + pad < high)) return undefined;
    if (pad > 0) pads.push(low + pad);
    before = end;
  }
  return pads;
}

/** Rows kept by address: more than any stack has, but few in memory. */
const MAX_CACHED = 0x1_0000;
const BYTES_OF_RULE = 64;
const BYTES_OF_FUNCTION = 128;
const ofFiles = new WeakMap<ElfFile, CallFrames>();

/**
 * The call frame information of one ELF, from .eh_frame and .debug_frame together. An ELF may have its own functions
 * in one and its libraries' in the other. Loading reads the entries' ranges. A function's program is run when one of
 * its rows is asked for.
 */
export class CallFrames {
  /** What could not be used, one sentence each. */
  readonly warnings: string[] = [];
  /** In the order of their code. Of two for the same function, the one from .debug_frame is last and is found. */
  readonly #fdes: readonly Fde[];
  readonly #lows: Float64Array;
  readonly #elf: ElfFile;
  readonly #codes: CodeSpace;
  readonly #budget: Budget;
  readonly #tables = new Map<number, CfiTable | undefined>();
  readonly #rows = new Map<CodeAddress, UnwindRow | undefined>();

  private constructor(elf: ElfFile) {
    this.#elf = elf;
    this.#codes = elf.codes;
    this.#budget = elf.budget;
    const fdes: Fde[] = [];
    const warn = (message: string): void => this.#warn(message);
    for (const name of ['.eh_frame', '.debug_frame'] as const) {
      for (const fde of new CfiSection(elf, name).fdes(warn)) fdes.push(fde);
    }
    elf.budget.hold(fdes.length * BYTES_OF_FUNCTION, 'call frame information');
    this.#fdes = fdes.sort((a, b) => a.low - b.low);
    this.#lows = Float64Array.from(this.#fdes, ({ low }) => low);
  }

  /**
   * Those of a file, read once. Throws `ELF_DAMAGED` if a section cannot be unpacked; damaged entries only become
   * warnings.
   */
  static load(elf: ElfFile): CallFrames {
    return madeOnce(ofFiles, elf, () => new CallFrames(elf));
  }

  /** The ranges of code that it covers, in the order of addresses. */
  *ranges(): Generator<{ readonly low: CodeAddress; readonly high: CodeAddress }> {
    for (const { low, high } of this.#fdes) yield { low, high };
  }

  /** Where an unwinder may enter the function there in its middle; undefined if what says that cannot be read. */
  landingPads(address: Addr): readonly Addr[] | undefined {
    const code = this.#codes.toCode(address);
    let index = lastNotAbove(this.#lows, this.#lows.length, code);
    const low = this.#lows[index];
    const found: Addr[] = [];
    for (; index >= 0 && this.#lows[index] === low; index--) {
      const fde = this.#fdes[index];
      if (!fde || code >= fde.high) continue;
      const pads = landingPads(this.#elf, fde);
      if (!pads) return undefined;
      for (const pad of pads) found.push(this.#codes.fromCode(pad));
    }
    return found;
  }

  /** The row for the frame with this pc (for a caller: the pc less one); undefined if no entry covers it. */
  rowAt(address: Addr): UnwindRow | undefined {
    return this.row(this.#codes.toCode(address));
  }

  /** The same by the address's number in the ELF's tables. */
  row(code: CodeAddress): UnwindRow | undefined {
    const known = this.#rows.get(code);
    if (known !== undefined || this.#rows.has(code)) return known;
    const row = this.#table(lastNotAbove(this.#lows, this.#lows.length, code), code)?.at(code);
    if (this.#rows.size >= MAX_CACHED) this.#rows.clear();
    this.#rows.set(code, row);
    return row;
  }

  #table(index: number, code: CodeAddress): CfiTable | undefined {
    const fde = this.#fdes[index];
    if (fde === undefined || !(code < fde.high)) return undefined;
    if (!this.#tables.has(index)) {
      let table: CfiTable | undefined;
      try {
        this.#budget.spend(fde.end - fde.start + fde.cie.end - fde.cie.start, fde.section.name);
        table = new CfiTable(fde);
        this.#budget.hold(table.rules * BYTES_OF_RULE, fde.section.name);
      } catch (error) {
        if (!isDamage(error)) throw error;
        this.#warn(`${fde.section.name}, function at ${hex(this.#codes.fromCode(fde.low))}: ${messageOf(error)}`);
      }
      this.#tables.set(index, table);
    }
    return this.#tables.get(index);
  }

  #warn(message: string): void {
    if (this.warnings.length < 1000) this.warnings.push(message);
  }
}
