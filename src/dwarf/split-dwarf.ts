// Debug info that is not in the file, of two kinds. Split DWARF (DWARF 5, section 7.3.2; before it GNU's
// DebugFission): the linked file has skeletons, and .dwo or .dwp files have the rest. They are read where they are
// found. Supplementary files (section 7.3.6, and GNU's .gnu_debugaltlink, which dwz makes) have what several files
// share, and are not read. What is missing is said, with how to get it.
import { basename, dirname, isAbsolute, join } from 'node:path';
import { messageOf, RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import { DW_AT, DW_UT } from './constants.js';
import type { DebugInfo } from './debug-info.js';
import { SplitFile } from './split-file.js';
import type { Unit } from './unit.js';

const HINT =
  'give their folder with --debug-dir or the .dwp package with --debug-file, or build with split-debuginfo=off (rustc), without -gsplit-dwarf (gcc, clang)';

/** The error for a file without .debug_info whose debug info is elsewhere; undefined when there is no sign of any. */
export function splitFileError(elf: ElfFile): RsptraceError | undefined {
  if (!elf.has('.debug_info.dwo')) return undefined;
  const kind = elf.isSplitPackage ? '.dwp package' : '.dwo file';
  return new RsptraceError('DWARF_SPLIT', `${elf.path} is a ${kind}: split debug info without its program`, {
    hint: 'give the linked program: such files are found beside it',
  });
}

/** The units of a program whose debug info is partly elsewhere. */
export interface SplitUnits {
  /** Those to use: of a skeleton the unit that it stands for, where that was found. Then the type units. */
  readonly used: readonly Unit[];
  /** All that were read, in the order of their offsets. */
  readonly all: readonly Unit[];
  /** The error for a program all of whose units are elsewhere and were not found. */
  readonly missing: RsptraceError | undefined;
}

/** Looks for what the linked file's units leave to other files. `limit`: of the offsets of DIEs. */
export function readSplitUnits(debug: DebugInfo, linked: readonly Unit[], end: number, limit: number): SplitUnits {
  // Skeletons before DWARF 5 say so only in their root; all have .debug_addr, which no other DWARF 4 unit has.
  const fission = debug.sections.get('.debug_addr').length > 0;
  const skeletons = linked.filter((unit) => isSkeleton(debug, unit, fission));
  const files = new SplitFiles(debug, end, limit);
  const of = new Map<Unit, Unit>();
  for (const skeleton of skeletons) {
    const found = files.unitOf(skeleton);
    if (found !== undefined) of.set(skeleton, found);
  }
  const lost = skeletons.filter((unit) => !of.has(unit));
  const what = `${lost.length} of ${linked.length} units of ${debug.elf.path} have their debug info in .dwo files, which ${files.reason}`;
  if (lost.length > 0) debug.lack(what, HINT);
  return {
    used: [...linked.map((unit) => of.get(unit) ?? unit), ...files.opened.flatMap((file) => file.typeUnits)],
    all: [...linked, ...files.opened.flatMap((file) => file.units)],
    missing:
      lost.length > 0 && lost.length === linked.length
        ? new RsptraceError('DWARF_SPLIT', what, { hint: HINT })
        : undefined,
  };
}

/** Says which supplementary file is not read. */
export function checkSupplement(debug: DebugInfo): void {
  const shared = supplementName(debug.elf);
  if (shared === undefined) return;
  debug.warn(
    `${debug.elf.path} shares debug info with the supplementary file ${shared}, which is not read: what refers to it has no name or type`,
  );
}

/** The package of a program and its .dwo files, each opened once. */
class SplitFiles {
  readonly opened: SplitFile[] = [];
  readonly #debug: DebugInfo;
  readonly #byPath = new Map<string, SplitFile | undefined>();
  readonly #limit: number;
  #end: number;
  /** Why a unit was not found: of the first. */
  #reason: string | undefined;

  constructor(debug: DebugInfo, end: number, limit: number) {
    this.#debug = debug;
    this.#end = end;
    this.#limit = limit;
  }

  /** Why units were not found: the first reason, as a clause. */
  get reason(): string {
    return this.#reason ?? 'were not found';
  }

  unitOf(skeleton: Unit): Unit | undefined {
    const { splitPackage } = this.#debug.elf;
    if (splitPackage !== undefined) {
      const found = this.#file(splitPackage.path, () => splitPackage)?.take(skeleton);
      if (found !== undefined) return found;
    }
    const name = this.#debug.attempt(skeleton, () => dwoName(skeleton));
    if (name === undefined) return undefined;
    for (const path of this.#places(skeleton, name)) {
      const file = this.#file(path, () => this.#debug.elf.beside(path));
      const found = file?.take(skeleton);
      if (found !== undefined) return found;
      if (file !== undefined) this.#reason ??= `are of another build (${path}, ...)`;
    }
    this.#reason ??= `were not found (${name}, ...)`;
    return undefined;
  }

  /** Where the compiler wrote it, and where it may have been moved with the program. */
  #places(skeleton: Unit, name: string): string[] {
    const folder = this.#debug.attempt(skeleton, () => skeleton.compDir) ?? '';
    const { path, debugDirs } = this.#debug.elf;
    const home = dirname(path);
    const moved = [join(home, basename(name)), ...debugDirs.map((dir) => join(dir, basename(name)))];
    return isAbsolute(name) ? [name, ...moved] : [join(folder, name), join(home, name), ...moved];
  }

  #file(path: string, open: () => ElfFile | undefined): SplitFile | undefined {
    if (!this.#byPath.has(path)) this.#byPath.set(path, this.#read(path, open));
    return this.#byPath.get(path);
  }

  #read(path: string, open: () => ElfFile | undefined): SplitFile | undefined {
    try {
      const elf = open();
      if (elf === undefined || !elf.has('.debug_info.dwo')) return undefined;
      const file = new SplitFile(this.#debug, elf, this.#end);
      if (file.end > this.#limit) {
        this.#reason ??= `with the program's are more than 4 GiB (from ${path} on)`;
        return undefined;
      }
      this.#end = file.end;
      this.opened.push(file);
      return file;
    } catch (error) {
      if (!(error instanceof RsptraceError) || error.code === 'ELF_TOO_COSTLY') throw error;
      this.#reason ??= `cannot be read (${messageOf(error)})`;
      return undefined;
    }
  }
}

function isSkeleton(debug: DebugInfo, unit: Unit, fission: boolean): boolean {
  if (unit.version >= 5) return unit.header.type === DW_UT.skeleton;
  return fission && debug.attempt(unit, () => unit.root.has(DW_AT.GNU_dwo_name)) === true;
}

function dwoName(unit: Unit): string | undefined {
  return unit.root.string(DW_AT.dwo_name) ?? unit.root.string(DW_AT.GNU_dwo_name);
}

// .gnu_debugaltlink: name, build id.   .debug_sup: version (2) | is_supplementary (1) | name | ...
function supplementName(elf: ElfFile): string | undefined {
  const link = elf.section('.gnu_debugaltlink') ?? elf.section('.debug_sup')?.subarray(3);
  const end = link?.indexOf(0) ?? -1;
  return link === undefined || end <= 0 ? undefined : Buffer.from(link.subarray(0, end)).toString('utf8');
}
