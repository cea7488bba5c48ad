import { lastNotAbove } from '../elf/index.js';
import type { SplitUnits } from './split-dwarf.js';
import type { Unit } from './unit.js';

/** All units of an ELF, by the offsets of their DIEs and, of type units, by signature. */
export class UnitList {
  /** Those whose entries are to be used, see {@link SplitUnits}. */
  readonly used: readonly Unit[];
  readonly #all: readonly Unit[];
  readonly #inPlaceOf: ReadonlyMap<Unit, Unit>;
  readonly #starts: Float64Array;
  readonly #signatures = new Map<string, Unit>();

  constructor({ used, all, of }: SplitUnits) {
    this.used = used;
    this.#all = all;
    this.#inPlaceOf = of;
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

  /** The unit whose header begins at an offset, or the split one that it stands for. */
  beginningAt(offset: number): Unit | undefined {
    const unit = this.at(offset);
    return unit?.offset === offset ? (this.#inPlaceOf.get(unit) ?? unit) : undefined;
  }

  /** The type unit with a signature (16 hex digits). */
  ofType(signature: string): Unit | undefined {
    return this.#signatures.get(signature);
  }
}
