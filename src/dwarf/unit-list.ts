import { lastNotAbove } from '../elf/index.js';
import type { AbbrevCache } from './abbrev.js';
import type { DebugInfo } from './debug-info.js';
import { Unit, type UnitHeader } from './unit.js';

/** All units of an ELF, by the offsets of their DIEs and, of type units, by signature. */
export class UnitList {
  readonly all: readonly Unit[];
  readonly #starts: Float64Array;
  readonly #signatures = new Map<string, Unit>();

  /** `headers` in the order of their offsets. */
  constructor(debug: DebugInfo, headers: readonly UnitHeader[], abbrevs: AbbrevCache) {
    this.all = headers.map((header, i) => new Unit(debug, header, i, abbrevs));
    this.#starts = Float64Array.from(headers, (h) => h.offset);
    for (const unit of this.all) {
      const { signature } = unit.header;
      if (signature !== undefined && !this.#signatures.has(signature)) this.#signatures.set(signature, unit);
    }
  }

  /** The unit with a DIE offset. */
  at(offset: number): Unit | undefined {
    const unit = this.all[lastNotAbove(this.#starts, this.#starts.length, offset)];
    return unit !== undefined && offset < unit.end ? unit : undefined;
  }

  /** The type unit with a signature (16 hex digits). */
  ofType(signature: string): Unit | undefined {
    return this.#signatures.get(signature);
  }
}
