import { type CodeAddress, IntervalIndex, IntervalList, lastNotAbove } from '../elf/index.js';
import type { DebugInfo } from './debug-info.js';
import type { SplitUnits } from './split-dwarf.js';
import type { Unit } from './unit.js';

/** All units of an ELF, by the offsets of their DIEs and, of type units, by signature. */
export class UnitList {
  /** Those whose entries are to be used, see {@link SplitUnits}. */
  readonly used: readonly Unit[];
  readonly #all: readonly Unit[];
  readonly #starts: Float64Array;
  readonly #signatures = new Map<string, Unit>();

  constructor({ used, all }: SplitUnits) {
    this.used = used;
    this.#all = all;
    this.#starts = Float64Array.from(all, (unit) => unit.offset);
    for (const unit of all) {
      const { signature } = unit.header;
      if (signature !== undefined && !this.#signatures.has(signature)) this.#signatures.set(signature, unit);
    }
  }

  /** The unit with a DIE offset. */
  at(offset: number): Unit | undefined {
    const unit = this.#all[lastNotAbove(this.#starts, this.#starts.length, offset)];
    return unit !== undefined && offset < unit.end ? unit : undefined;
  }

  /** The type unit with a signature (16 hex digits). */
  ofType(signature: string): Unit | undefined {
    return this.#signatures.get(signature);
  }
}

/** Which unit covers a code address. */
export class UnitRanges {
  readonly #debug: DebugInfo;
  readonly #index: IntervalIndex;
  /** Units whose root names no ranges. They may have functions all the same. */
  readonly #withoutRanges: readonly Unit[];

  constructor(debug: DebugInfo) {
    this.#debug = debug;
    const { shift } = debug.elf.codes;
    // Kept by the ELF's own addresses: a loader puts a program elsewhere each time.
    const [low = none, high = none, unit = none, without = none] =
      shift === undefined ? rangesOf(debug, 0) : debug.columns('unit-ranges', () => rangesOf(debug, shift));
    const list = new IntervalList();
    for (let i = 0; i < low.length; i++)
      list.add((low[i] as number) + (shift ?? 0), (high[i] as number) + (shift ?? 0), unit[i] as number);
    this.#withoutRanges = Array.from(without, (index) => debug.units[index]).filter((one) => one !== undefined);
    this.#index = new IntervalIndex(list);
  }

  find(code: CodeAddress): Unit | undefined {
    const debug = this.#debug;
    const known = debug.units[this.#index.find(code)];
    if (known !== undefined) return known;
    debug.elf.budget.spend(this.#withoutRanges.length, 'the units');
    return this.#withoutRanges.find((unit) => debug.attempt(unit, () => debug.indexOf(unit).functionAt(code)));
  }
}

const none = new Float64Array();

/** Columns of ranges: from, to, less `shift`, and whose they are, as an index; and the indexes of units without any. */
function rangesOf(debug: DebugInfo, shift: number): Float64Array[] {
  const [low, high, of, without]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (const [index, unit] of debug.units.entries()) {
    const ranges = debug.attempt(unit, () => debug.rangesForTable((unit.skeleton ?? unit).root)) ?? [];
    if (ranges.length === 0) without.push(index);
    for (const range of ranges) {
      low.push(range.low - shift);
      high.push(range.high - shift);
      of.push(index);
    }
  }
  return [low, high, of, without].map((rows) => Float64Array.from(rows));
}
