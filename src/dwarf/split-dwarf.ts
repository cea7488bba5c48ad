// Debug info that is not in the file, of two kinds. Split DWARF (DWARF 5, section 7.3.2; before it GNU's
// DebugFission): the linked file has skeletons, and .dwo or .dwp files have the rest. Supplementary files (section
// 7.3.6, and GNU's .gnu_debugaltlink, which dwz makes) have what several files share. Neither kind of file is read.
// The errors say what is missing, and how to get it in one file.
import { RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import { DW_AT, DW_UT } from './constants.js';
import type { DebugInfo } from './debug-info.js';
import type { Unit } from './unit.js';

const HINT =
  'build with -C split-debuginfo=off (rustc) or without -gsplit-dwarf (gcc, clang): all debug info is then in the ELF';

/** The error for a file without .debug_info whose debug info is elsewhere; undefined when there is no sign of any. */
export function splitFileError(elf: ElfFile): RsptraceError | undefined {
  if (!elf.has('.debug_info.dwo')) return undefined;
  const kind = elf.has('.debug_cu_index') || elf.has('.debug_tu_index') ? '.dwp package' : '.dwo file';
  return new RsptraceError('DWARF_SPLIT', `${elf.path} is a ${kind}: split debug info without its program`, {
    hint: `give the linked program; ${HINT}`,
  });
}

/** Warns about units whose entries are in other files. Throws `DWARF_SPLIT` if all units are. */
export function checkSplit(debug: DebugInfo): void {
  const { elf } = debug;
  // Skeletons before DWARF 5 say so only in their root; all have .debug_addr, which no other DWARF 4 unit has.
  const fission = debug.sections.get('.debug_addr').length > 0;
  const split = debug.units.filter((unit) => isSkeleton(debug, unit, fission));
  if (split.length > 0) {
    const name = debug.attempt(split[0] as Unit, () => dwoName(split[0] as Unit)) ?? '?';
    const what = `${split.length} of ${debug.units.length} units of ${elf.path} have their debug info in .dwo files (${name}, ...), which are not read`;
    if (split.length === debug.units.length) throw new RsptraceError('DWARF_SPLIT', what, { hint: HINT });
    debug.warn(what);
  }
  const shared = supplementName(elf);
  if (shared !== undefined) {
    debug.warn(
      `${elf.path} shares debug info with the supplementary file ${shared}, which is not read: what refers to it has no name or type`,
    );
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
