// The sections that a unit of split DWARF reads (DWARF 5, section 7.3.2.2): its own file's, whose names end with
// .dwo, or of a .dwp package the unit's parts of them (section 7.3.5.2); and of the linked program what the linker
// has to relocate, the addresses.
import type { Budget } from '../base/budget.js';
import type { SectionSource } from '../elf/index.js';
import type { Contribution } from './split-index.js';

/** What a split unit reads in the linked program: DWARF 4 has no lists of ranges in .dwo files. */
const LINKED: ReadonlySet<string> = new Set(['.debug_addr', '.debug_ranges']);

export class SplitSections implements SectionSource {
  readonly #linked: SectionSource;
  readonly #file: SectionSource;
  readonly #parts: ReadonlyMap<string, Contribution>;

  /** `parts`: of a package, the unit's row of its index; empty for a .dwo file. */
  constructor(linked: SectionSource, file: SectionSource, parts: ReadonlyMap<string, Contribution> = new Map()) {
    this.#linked = linked;
    this.#file = file;
    this.#parts = parts;
  }

  get budget(): Budget {
    return this.#linked.budget;
  }

  get(name: string): Uint8Array {
    if (LINKED.has(name)) return this.#linked.get(name);
    const whole = this.#file.get(`${name}.dwo`);
    const part = this.#parts.get(name);
    return part === undefined ? whole : whole.subarray(part.offset, part.offset + part.size);
  }

  stringAt(name: string, offset: number): string | undefined {
    return this.#file.stringAt(`${name}.dwo`, offset);
  }
}
