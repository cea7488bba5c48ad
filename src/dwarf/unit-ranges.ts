import { type CodeAddress, IntervalIndex, IntervalList } from '../elf/index.js';
import { readAranges } from './aranges.js';
import type { DebugInfo } from './debug-info.js';
import type { Unit } from './unit.js';

/** Which unit covers a code address. */
export class UnitRanges {
  readonly #debug: DebugInfo;
  readonly #index: IntervalIndex;
  /** Units whose root names no ranges. They may have functions all the same. */
  readonly #withoutRanges: readonly Unit[];

  constructor(debug: DebugInfo) {
    this.#debug = debug;
    const list = new IntervalList();
    const without = new Map<Unit, number>();
    for (const [index, unit] of debug.units.entries()) {
      const ranges = debug.attempt(unit, () => debug.rangesForTable((unit.skeleton ?? unit).root)) ?? [];
      if (ranges.length === 0) without.set(unit, index);
      for (const { low, high } of ranges) list.add(low, high, index);
    }
    // A unit's root is preferred, because compilers leave .debug_aranges out, or put variables into it.
    if (without.size > 0) {
      readAranges(debug, (unit, low, high) => {
        const index = without.get(unit);
        if (index !== undefined && debug.elf.isLoaded(low)) list.add(low, high, index);
      });
    }
    this.#withoutRanges = [...without.keys()];
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
