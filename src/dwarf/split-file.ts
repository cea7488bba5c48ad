import type { Budget } from '../base/budget.js';
import { type BytesInPart, DwarfSections, type ElfFile, type SectionSource, wholly } from '../elf/index.js';
import { AbbrevCache } from './abbrev.js';
import { DW_AT, DW_UT } from './constants.js';
import type { DebugInfo } from './debug-info.js';
import { type Contribution, readUnitIndex } from './split-index.js';
import { readUnitHeaders, Unit, type UnitHeader } from './unit.js';

// One file of split debug info: a .dwo file (DWARF 5, section 7.3.2.2, or GNU's of DWARF 4), an object file with the
// same sections in it (-gsplit-dwarf=single), or a .dwp package of them (section 7.3.5).

// The sections that a unit of split DWARF reads (DWARF 5, section 7.3.2.2): its own file's, whose names end with
// .dwo, or of a .dwp package the unit's parts of them (section 7.3.5.2); and of the linked program what the linker
// has to relocate, the addresses.
/** What a split unit reads in the linked program: DWARF 4 has no lists of ranges in .dwo files. */
const LINKED: ReadonlySet<string> = new Set(['.debug_addr', '.debug_ranges']);

class SplitSections implements SectionSource {
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

  inPart(name: string): BytesInPart {
    return LINKED.has(name) ? this.#linked.inPart(name) : wholly(this.get(name));
  }

  stringAt(name: string, offset: number): string | undefined {
    return this.#file.stringAt(`${name}.dwo`, offset);
  }
}

const BYTES_OF_UNIT = 512;

export class SplitFile {
  readonly path: string;
  /** Behind the last of its DIE offsets. */
  readonly end: number;
  /** In the order of their offsets. */
  readonly units: readonly Unit[];
  readonly #debug: DebugInfo;
  readonly #byId = new Map<string, Unit>();

  /** Its DIEs have offsets from `base` on. Throws `ELF_DAMAGED` and what reading an index throws. */
  constructor(debug: DebugInfo, elf: ElfFile, base: number) {
    this.path = elf.path;
    this.#debug = debug;
    const { budget } = debug.elf;
    const sections = new DwarfSections(elf);
    const [info, types] = [sections.get('.debug_info.dwo'), sections.get('.debug_types.dwo')];
    this.end = base + info.length + types.length;
    budget.grow(info.length + types.length);
    const parts = new Map([
      ...rowsByStart(sections, '.debug_info', base),
      ...rowsByStart(sections, '.debug_types', base + info.length),
    ]);
    const abbrevs = new AbbrevCache(sections.get('.debug_abbrev.dwo'), budget);
    const warn = (message: string): void => debug.warn(`${this.path}: ${message}`);
    const headers = [
      ...readUnitHeaders(wholly(info), '.debug_info.dwo', base, warn),
      ...readUnitHeaders(wholly(types), '.debug_types.dwo', base + info.length, warn),
    ];
    budget.hold(headers.length * BYTES_OF_UNIT, 'the units');
    const whole = new SplitSections(debug.sections, sections);
    this.units = headers.map((header) => {
      const own = parts.get(header.offset);
      if (own === undefined) return new Unit(debug, header, { abbrevs, sections: whole, info: base });
      const abbrevOffset = header.abbrevOffset + (own.get('.debug_abbrev')?.offset ?? 0);
      const split = new SplitSections(debug.sections, sections, own);
      const start = base + (own.get('.debug_info')?.offset ?? 0);
      return new Unit(debug, { ...header, abbrevOffset }, { abbrevs, sections: split, info: start });
    });
    for (const unit of this.units) {
      const id = isType(unit.header) ? undefined : debug.attempt(unit, () => dwoId(unit));
      if (id !== undefined && !this.#byId.has(id)) this.#byId.set(id, unit);
    }
  }

  get typeUnits(): readonly Unit[] {
    return this.units.filter((unit) => isType(unit.header));
  }

  /** Takes the unit of a skeleton: each belongs to one. */
  take(skeleton: Unit): Unit | undefined {
    const id = this.#debug.attempt(skeleton, () => dwoId(skeleton));
    const unit = id === undefined ? undefined : this.#byId.get(id);
    if (id === undefined || unit === undefined) return undefined;
    this.#byId.delete(id);
    unit.skeleton = skeleton;
    return unit;
  }
}

/** What joins a skeleton and its unit: in DWARF 5 a field of both headers, before it an attribute of both roots. */
function dwoId(unit: Unit): string | undefined {
  return unit.header.dwoId ?? unit.root.big(DW_AT.GNU_dwo_id)?.toString(16).padStart(16, '0');
}

function isType({ type }: UnitHeader): boolean {
  return type === DW_UT.type || type === DW_UT.split_type;
}

/** The parts of a package's units, by the offset at which a unit begins. */
function rowsByStart(
  sections: DwarfSections,
  name: '.debug_info' | '.debug_types',
  base: number,
): [number, ReadonlyMap<string, Contribution>][] {
  return (['.debug_cu_index', '.debug_tu_index'] as const).flatMap((index) =>
    readUnitIndex(sections, index).flatMap(({ parts }): [number, ReadonlyMap<string, Contribution>][] => {
      const part = parts.get(name);
      return part === undefined ? [] : [[base + part.offset, parts]];
    }),
  );
}
