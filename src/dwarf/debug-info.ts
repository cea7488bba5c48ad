import type { Addr } from '../base/addr.js';
import { isDamage, messageOf, RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import { madeOnce } from '../base/made-once.js';
import { type CodeAddress, type Column, DwarfSections, debugLink, type ElfFile, Kept } from '../elf/index.js';
import { AbbrevCache } from './abbrev.js';
import { DW_AT } from './constants.js';
import { Die, DieCursor } from './die.js';
import { functionName } from './function-names.js';
import type { LineTable } from './line.js';
import type { LineHeader } from './line-header.js';
import type { FileName } from './line-tables.js';
import { LineTables } from './line-tables.js';
import { type NamedKind, NameIndex } from './name-index.js';
import { qualifiedName, through } from './names.js';
import { type AddressRange, rangesOf } from './ranges.js';
import { type CodePlace, codePlace } from './source-stack.js';
import { checkSupplement, readSplitUnits, splitFileError } from './split-dwarf.js';
import { readUnitHeaders, Unit } from './unit.js';
import { allIndexes, UnitIndex } from './unit-index.js';
import { UnitList, UnitRanges } from './unit-list.js';
import { Warnings } from './warnings.js';

/** Memory of a unit, and of a range in tables. */
const BYTES_OF_UNIT = 512;
const BYTES_OF_RANGE = 64;
/** Offsets of DIEs are kept in 32-bit columns. */
const MAX_INFO = 0xffff_ffff;
/** So many functions of one name take longer to find than to read from a file. */
const MANY_INSTANCES = 30;

export interface SourcePosition {
  /** The full path, as the compiler recorded it. */
  readonly file: string;
  readonly line: number;
  /** From 1; 0 if the compiler did not say. */
  readonly column: number;
}

export interface FunctionInfo {
  /** With its modules, without generic arguments: `labkern::work::Disk::seek`. */
  readonly name: string;
  readonly low: Addr;
  /** Behind the last byte of the range that begins at `low`. */
  readonly high: Addr;
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly die: Die;
}

/**
 * The debug info of one ELF. Loading reads the unit headers only; the rest is indexed unit by unit on request. A
 * damaged unit is left out with a warning and the others are used.
 */
export class DebugInfo {
  readonly elf: ElfFile;
  readonly sections: DwarfSections;
  /** `DWARF_SPLIT`, where all entries are in .dwo files that were not found: lines are known, but nothing else. */
  readonly missing: RsptraceError | undefined;
  readonly #warnings: Warnings;
  readonly #units: UnitList;
  #indexes: Map<Unit, UnitIndex> | undefined;
  readonly #kept: Kept | undefined;
  readonly #lines = new LineTables(this);
  #ranges: UnitRanges | undefined;
  #names: NameIndex | undefined;

  private constructor(elf: ElfFile, log: Logger) {
    this.elf = elf;
    this.#warnings = new Warnings(elf, log);
    this.sections = new DwarfSections(elf);
    const [info, types] = [this.sections.inPart('.debug_info'), this.sections.inPart('.debug_types')];
    const behind = info.bytes.length;
    const end = behind + types.bytes.length;
    if (end > MAX_INFO) {
      throw new RsptraceError('DWARF_TOO_LARGE', `${elf.path} has more than 4 GiB of debug info`);
    }
    const abbrevs = new AbbrevCache(this.sections.get('.debug_abbrev'), elf.budget);
    const warn = (message: string): void => this.warn(message);
    const headers = [
      ...readUnitHeaders(info, '.debug_info', 0, warn),
      ...readUnitHeaders(types, '.debug_types', behind, warn),
    ];
    elf.budget.hold(headers.length * BYTES_OF_UNIT, 'the units');
    const home = { abbrevs, sections: this.sections, info: 0 };
    const linked = headers.map((header) => new Unit(this, header, home));
    const split = readSplitUnits(this, linked, end, MAX_INFO);
    this.#units = new UnitList(split);
    this.missing = split.missing;
    checkSupplement(this);
    if (split.all.length === linked.length) this.#kept = Kept.of(elf);
  }

  /**
   * Finds the units. Throws `DWARF_MISSING` (no debug info), `ELF_DAMAGED`, or, unless lines suffice, `DWARF_SPLIT`
   * (see {@link missing}).
   */
  static load(elf: ElfFile, options: { readonly logger?: Logger; readonly linesSuffice?: boolean } = {}): DebugInfo {
    if (!elf.has('.debug_info')) {
      const split = splitFileError(elf);
      if (split !== undefined) throw split;
      throw debugInfoMissing(elf);
    }
    const debug = new DebugInfo(elf, options.logger ?? silent);
    if (debug.missing !== undefined && !options.linesSuffice) throw debug.missing;
    return debug;
  }

  get units(): readonly Unit[] {
    return this.#units.used;
  }

  /** What could not be used, one sentence each. */
  get warnings(): readonly string[] {
    return this.#warnings.list;
  }

  /** Notes something that could not be used. */
  warn(message: string): void {
    this.#warnings.add(message);
  }

  /** Notes, in its own words, that a part of the debug info is not there; `hint`: how to have it. */
  lack(message: string, hint: string): void {
    this.#warnings.lack(message, hint);
  }

  /** The unit with a DIE offset. */
  unitAt(offset: number): Unit | undefined {
    return this.#units.at(offset);
  }

  /** The type unit with a signature (16 hex digits). */
  typeUnit(signature: string): Unit | undefined {
    return this.#units.ofType(signature);
  }

  /** The DIE at an offset; undefined if no unit has it. Throws `DWARF_DAMAGED` if none can be read there. */
  die(offset: number): Die | undefined {
    const unit = this.unitAt(offset);
    return unit === undefined ? undefined : Die.at(unit, offset);
  }

  /** A unit's index of scopes and functions, built on first use. Throws what reading the unit throws. */
  indexOf(unit: Unit): UnitIndex {
    this.#indexes ??= this.#kept ? allIndexes(this) : new Map<Unit, UnitIndex>();
    return madeOnce(this.#indexes, unit, () => new UnitIndex(unit));
  }

  /**
   * Columns of DIE offsets that `find` reads from all units. They are kept for the next time, see {@link Kept}, if the
   * first column has `least` rows or more. Where something is damaged or missing they are not, so that it is said each
   * time.
   */
  columns<T extends Column>(name: string, find: () => readonly T[], least = 0): readonly T[] {
    const known = this.#kept?.read(name);
    if (known) return known as readonly T[];
    const found = find();
    if ((found[0]?.length ?? 0) >= least) this.kept?.write(name, found);
    return found;
  }

  /** What is kept for the next time; undefined where something is damaged or missing, so that it is said each time. */
  get kept(): Kept | undefined {
    return this.warnings.length === 0 ? this.#kept : undefined;
  }

  /** The code that a unit or function covers, for a table; without ranges of code that the linker discarded. */
  rangesForTable(die: Die | DieCursor): AddressRange[] {
    const ranges = rangesOf(die).filter((r) => this.elf.isLoaded(r.low));
    this.elf.budget.hold(ranges.length * BYTES_OF_RANGE, 'the ranges of functions');
    return ranges;
  }

  /** The unit that covers a code address. */
  unitFor(address: Addr): Unit | undefined {
    return this.#unitFor(this.elf.codes.toCode(address));
  }

  /** The index of names over all units, built on first use. */
  get names(): NameIndex {
    this.#names ??= new NameIndex(this);
    return this.#names;
  }

  /**
   * The types of a name, as {@link NameIndex.find} reads it; if many units have a type, its first DIE. Two types are
   * the same if full name, kind and size are equal. Declarations without a definition do not count.
   */
  typesNamed(name: string): Die[] {
    return this.#distinct(name, 'type', (die) => `${die.tag} ${die.number(DW_AT.byte_size)} ${qualifiedName(die)}`);
  }

  /** The functions of a name: those with code of their own, and those that were inlined everywhere. */
  functionsNamed(name: string): Die[] {
    const find = (): Uint32Array[] => {
      const found = this.#distinct(name, 'function', (die) => `${die.offset}`);
      const origins = new Set(found.map((die) => die.reference(DW_AT.abstract_origin)));
      return [
        Uint32Array.from(
          found.filter((die) => !origins.has(die.offset)),
          ({ offset }) => offset,
        ),
      ];
    };
    // Generic functions have thousands of instances.
    const isKept = /^[\w:]+$/.test(name);
    const [found = []] = isKept ? this.columns(`fn-${name}`, find, MANY_INSTANCES) : find();
    return [...found].flatMap((offset) => this.die(offset) ?? []);
  }

  /** The static variables and constants of a name, not those local to a function. */
  variablesNamed(name: string): Die[] {
    return this.#distinct(name, 'variable', (die) => `${die.offset}`);
  }

  #distinct(name: string, kind: NamedKind, keyOf: (die: Die) => string): Die[] {
    const found = new Map<string, Die>();
    for (const die of this.names.find(name, kind)) {
      const key = this.attempt(die.unit, () => keyOf(die));
      if (key !== undefined && !found.has(key)) found.set(key, die);
    }
    return [...found.values()];
  }

  /** The function that covers an address, and where it is declared; without the functions inlined there. */
  functionAt(address: Addr): FunctionInfo | undefined {
    return this.elf.budget.answer(() => this.#functionAt(address));
  }

  #functionAt(address: Addr): FunctionInfo | undefined {
    const code = this.elf.codes.toCode(address);
    const unit = this.#unitFor(code);
    const die = unit && this.attempt(unit, () => this.indexOf(unit).functionAt(code));
    if (unit === undefined || die === undefined) return undefined;
    return this.attempt(unit, () => {
      const range = rangesOf(die).find((r) => code >= r.low && code < r.high);
      if (range === undefined) return undefined;
      return {
        name: functionName(die),
        low: this.elf.codes.fromCode(range.low),
        high: this.elf.codes.fromCode(range.high),
        ...this.declarationOf(die),
        die,
      };
    });
  }

  /** What is at an address: its line, and its function with those inlined there. */
  frameAt(address: Addr): CodePlace {
    return this.elf.budget.answer(() => codePlace(this, address));
  }

  /** The source position of an address; undefined if no line table covers it or it belongs to no source line. */
  lineAt(address: Addr): SourcePosition | undefined {
    return this.elf.budget.answer(() => this.#lineAt(address));
  }

  #lineAt(address: Addr): SourcePosition | undefined {
    const code = this.elf.codes.toCode(address);
    const unit = this.#unitFor(code);
    const row = unit && this.lineTable(unit)?.find(code);
    if (unit === undefined || row === undefined || row.line === 0) return undefined;
    const file = this.fileName(unit, row.file);
    return file === undefined ? undefined : { file: file.path, line: row.line, column: row.column };
  }

  /** File `index` of a unit's line table, as DW_AT.decl_file and line rows number it. */
  fileName(unit: Unit, index: number): FileName | undefined {
    return this.#lines.fileName(unit, index);
  }

  /** Where a DIE (or the one that it is an instance of) is declared. */
  declarationOf(die: Die): { readonly file: string | undefined; readonly line: number | undefined } {
    const file = through(die, (d) => {
      const index = d.number(DW_AT.decl_file);
      return index === undefined ? undefined : this.fileName(d.unit, index)?.path;
    });
    return { file, line: through(die, (d) => d.number(DW_AT.decl_line)) };
  }

  /** The header of a unit's line table; undefined if there is none or it is damaged. */
  lineHeader(unit: Unit): LineHeader | undefined {
    return this.#lines.header(unit);
  }

  /** A unit's line table, run on first use; undefined if there is none or it is damaged. */
  lineTable(unit: Unit): LineTable | undefined {
    return this.#lines.table(unit);
  }

  /**
   * Runs a function that reads a unit. Damage in the unit becomes a warning and `undefined`. Errors about the whole
   * file are thrown.
   */
  attempt<T>(unit: Unit, read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      return this.passOver(unit, error);
    }
  }

  /** What {@link attempt} does with an error. */
  passOver(unit: Unit, error: unknown): undefined {
    if (!isDamage(error)) throw error;
    this.warn(`unit at offset 0x${(unit.offset - unit.base).toString(16)}: ${messageOf(error)}`);
  }

  /** Visits the entries of all units, until `visit` gives true. Of a damaged unit the rest is left out. */
  walk(visit: (cursor: DieCursor) => unknown): void {
    const isEnough = (unit: Unit): boolean => {
      for (const cursor = DieCursor.of(unit); cursor.next(); ) if (visit(cursor) === true) return true;
      return false;
    };
    for (const unit of this.units) if (this.attempt(unit, () => isEnough(unit))) return;
  }

  #unitFor(code: CodeAddress): Unit | undefined {
    this.#ranges ??= new UnitRanges(this);
    return this.#ranges.find(code);
  }
}

/** The error `DWARF_MISSING` for a program without debug info: how to build it with some, or where it went. */
export function debugInfoMissing(elf: ElfFile): RsptraceError {
  const link = debugLink(elf);
  return new RsptraceError('DWARF_MISSING', `${elf.path} has no debug info`, {
    hint: elf.has('.zdebug_info')
      ? 'its sections .zdebug_* are packed in a way of before 2015: objcopy --decompress-debug-sections unpacks them'
      : link === undefined
        ? 'put `debug = 2` and `strip = false` under [profile.release] in Cargo.toml (dev builds have it), and do not run strip on the file'
        : `it was moved to ${link.name} (build id ${elf.buildId ?? 'none'}): give that file with --debug-file, or its folder with --debug-dir; debuginfod-find debuginfo fetches it by that id, and distributions have it in a package -dbgsym or -debuginfo`,
  });
}
