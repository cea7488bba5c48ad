import { posix } from 'node:path';
import type { SectionSource } from '../elf/index.js';
import type { DebugInfo } from './debug-info.js';
import { LineTable } from './line.js';
import { type LineHeader, readLineHeader } from './line-header.js';
import type { Unit } from './unit.js';

/** The line tables of all units, each read on first use. Several units may share one. */
export class LineTables {
  readonly #debug: DebugInfo;
  /** By section and offset in .debug_line; undefined is a damaged one. */
  readonly #headers = new Map<SectionSource, Map<number, LineHeader | undefined>>();
  readonly #tables = new Map<LineHeader, LineTable | undefined>();
  readonly #files = new Map<Unit, FileNames>();

  constructor(debug: DebugInfo) {
    this.#debug = debug;
  }

  /** See {@link DebugInfo.lineHeader}. */
  header(unit: Unit): LineHeader | undefined {
    const debug = this.#debug;
    // The linker must know line tables, so a skeleton keeps its unit's.
    const { sections } = unit.skeleton ?? unit;
    const offset = debug.attempt(unit, () => (unit.skeleton ?? unit).stmtList);
    if (offset === undefined) return undefined;
    const known = this.#headers.get(sections) ?? new Map<number, LineHeader | undefined>();
    this.#headers.set(sections, known);
    if (!known.has(offset)) {
      known.set(
        offset,
        debug.attempt(unit, () => readLineHeader(sections, offset)),
      );
    }
    return known.get(offset);
  }

  /** See {@link DebugInfo.lineTable}. */
  table(unit: Unit): LineTable | undefined {
    const debug = this.#debug;
    const header = this.header(unit);
    if (header === undefined) return undefined;
    if (!this.#tables.has(header)) {
      const section = (unit.skeleton ?? unit).sections.inPart('.debug_line').bytes;
      this.#tables.set(
        header,
        debug.attempt(unit, () => new LineTable(section, header, debug.elf)),
      );
    }
    return this.#tables.get(header);
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

export interface FileName {
  /** The compilation directory, the file's directory and its name, joined: `/labkern/src/work.rs`. */
  readonly path: string;
  /** The same without the compilation directory: `src/work.rs`. */
  readonly short: string;
}

/** The file names of one unit, joined when they are asked for. */
class FileNames {
  readonly #compDir: string;
  readonly #header: LineHeader | undefined;
  readonly #known = new Map<number, FileName | undefined>();

  constructor(compDir: string | undefined, header: LineHeader | undefined) {
    this.#compDir = compDir ?? '';
    this.#header = header;
  }

  at(index: number): FileName | undefined {
    if (!this.#known.has(index)) this.#known.set(index, this.#join(index));
    return this.#known.get(index);
  }

  #join(index: number): FileName | undefined {
    const header = this.#header;
    const file = header?.files[index];
    if (header === undefined || file === undefined) return undefined;
    const path = join(this.#compDir, join(header.directories[file.directory] ?? '', file.name));
    const prefix = this.#compDir.endsWith('/') ? this.#compDir : `${this.#compDir}/`;
    return { path, short: prefix !== '/' && path.startsWith(prefix) ? path.slice(prefix.length) : path };
  }
}

// `..` stays: behind a symbolic link it does not lead back.
function join(directory: string, name: string): string {
  if (directory === '' || posix.isAbsolute(name)) return name;
  return directory.endsWith('/') ? directory + name : `${directory}/${name}`;
}
