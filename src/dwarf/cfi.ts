import { type Addr, hex } from '../base/addr.js';
import type { Budget } from '../base/budget.js';
import { isDamage, messageOf } from '../base/errors.js';
import { madeOnce } from '../base/made-once.js';
import type { UnwindRow } from '../base/unwind-row.js';
import { type CodeAddress, type CodeSpace, type ElfFile, lastNotAbove } from '../elf/index.js';
import { CfiSection, type Fde } from './cfi-entries.js';
import { CfiTable } from './cfi-program.js';
import { landingPads } from './landing-pads.js';

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

  /** How many functions it covers. */
  get count(): number {
    return this.#fdes.length;
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
