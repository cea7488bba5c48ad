import type { DebugInfo } from './debug-info.js';
import { type FileName, FileNames } from './file-names.js';
import { LineTable } from './line.js';
import { type LineHeader, readLineHeader } from './line-header.js';
import type { Unit } from './unit.js';

/** The line tables of all units, each read on first use. Several units may share one. */
export class LineTables {
  readonly #debug: DebugInfo;
  /** By offset in .debug_line; undefined is a damaged one. */
  readonly #headers = new Map<number, LineHeader | undefined>();
  readonly #tables = new Map<number, LineTable | undefined>();
  readonly #files = new Map<Unit, FileNames>();

  constructor(debug: DebugInfo) {
    this.#debug = debug;
  }

  /** See {@link DebugInfo.lineHeader}. */
  header(unit: Unit): LineHeader | undefined {
    const debug = this.#debug;
    const offset = debug.attempt(unit, () => unit.stmtList);
    if (offset === undefined) return undefined;
    if (!this.#headers.has(offset)) {
      this.#headers.set(
        offset,
        debug.attempt(unit, () => readLineHeader(debug.sections, offset, unit.addressSize)),
      );
    }
    return this.#headers.get(offset);
  }

  /** See {@link DebugInfo.lineTable}. */
  table(unit: Unit): LineTable | undefined {
    const debug = this.#debug;
    const header = this.header(unit);
    if (header === undefined) return undefined;
    if (!this.#tables.has(header.offset)) {
      const section = debug.sections.get('.debug_line');
      this.#tables.set(
        header.offset,
        debug.attempt(unit, () => new LineTable(section, header, debug.elf)),
      );
    }
    return this.#tables.get(header.offset);
  }

  /** See {@link DebugInfo.fileName}. */
  fileName(unit: Unit, index: number): FileName | undefined {
    let names = this.#files.get(unit);
    if (names === undefined) {
      names = new FileNames(
        this.#debug.attempt(unit, () => unit.compDir),
        this.header(unit),
      );
      this.#files.set(unit, names);
    }
    return names.at(index);
  }
}
