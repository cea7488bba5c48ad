// Debug info in a file of its own: GDB manual, "Debugging Information in Separate Files". Two ways lead from a
// program to it:
//
//   .note.gnu.build-id   DIR/.build-id/ab/cdef....debug, the build id in hex
//   .gnu_debuglink       a name, zero-terminated, padded to 4 | CRC-32 of the whole file (4)
//                        looked for next to the program, in .debug/ there, and in DIR under the program's own folder
//
// A file that is found must belong to the program: by its build id where both have one, else by the CRC.
import { closeSync, existsSync, fstatSync, openSync, readSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import { messageOf, RsptraceError } from '../base/errors.js';
import type { ElfFile } from './elf.js';

/** Where distributions put debug files. */
const SYSTEM_DEBUG_DIR = '/usr/lib/debug';

export interface DebugFileOptions {
  /** The file with the debug info; no other is searched. */
  readonly debugFile?: string | undefined;
  /** Folders laid out like `/usr/lib/debug`, which is searched after them. */
  readonly debugDirs?: readonly string[] | undefined;
}

export interface OpenOptions extends DebugFileOptions {
  /** How far a loader has moved it, see `ElfFile.loadedAt`. */
  readonly loadBias?: bigint | undefined;
}

/**
 * The separate debug file of a program; undefined if there is none. `open` reads an ELF. If a file that the user
 * named belongs to another program, throws `DEBUG_FILE_MISMATCH`. A file that was only searched for is skipped, with
 * a call of `warn`.
 */
export function findDebugFile(
  elf: ElfFile,
  options: DebugFileOptions,
  open: (path: string) => ElfFile,
  warn: (message: string) => void,
): ElfFile | undefined {
  if (options.debugFile !== undefined) {
    const file = open(options.debugFile);
    const why = mismatch(elf, file);
    if (why === undefined) return file;
    throw new RsptraceError(
      'DEBUG_FILE_MISMATCH',
      `${options.debugFile} is not the debug file of ${elf.path}: ${why}`,
      {
        hint: 'both must come from the same build; compare `readelf -n` of the two',
      },
    );
  }
  const directories = [...(options.debugDirs ?? []), SYSTEM_DEBUG_DIR];
  for (const path of candidates(elf, directories)) {
    try {
      if (!existsSync(path) || isSame(path, elf.path)) continue;
      const file = open(path);
      const why = mismatch(elf, file) ?? (file.has('.debug_info') ? undefined : 'it has no debug info');
      if (why === undefined) return file;
      warn(`${path} is not used as the debug file: ${why}`);
    } catch (error) {
      warn(`${path} is not used as the debug file: ${messageOf(error)}`);
    }
  }
  return undefined;
}

/**
 * The .dwp package of a program, named like it or like its debug file: beside either, or in a folder of debug files.
 * Whether it belongs to the program each of its units says.
 */
export function findSplitPackage(
  files: readonly (ElfFile | undefined)[],
  { debugDirs = [] }: DebugFileOptions,
  open: (path: string) => ElfFile,
  warn: (message: string) => void,
): ElfFile | undefined {
  for (const file of files) {
    if (file === undefined) continue;
    const real = realPath(file.path);
    const names = [file.path, real, ...debugDirs.map((dir) => join(dir, basename(file.path)))];
    const path = names.map((name) => `${name}.dwp`).find((name) => existsSync(name));
    if (path === undefined) continue;
    try {
      return open(path);
    } catch (error) {
      warn(`${path} is not used as the package of split debug info: ${messageOf(error)}`);
    }
  }
  return undefined;
}

/** The content of `.gnu_debuglink`; undefined if there is none or it is damaged. */
export function debugLink(elf: ElfFile): { readonly name: string; readonly crc: number } | undefined {
  const bytes = elf.section('.gnu_debuglink');
  const end = bytes?.indexOf(0) ?? -1;
  if (bytes === undefined || end <= 0) return undefined;
  const at = (end + 4) & ~3;
  if (at + 4 > bytes.length) return undefined;
  const name = Buffer.from(bytes.subarray(0, end)).toString('utf8');
  // A name with a folder in it could lead anywhere.
  if (name.includes('/')) return undefined;
  return { name, crc: new DataView(bytes.buffer, bytes.byteOffset + at, 4).getUint32(0, true) };
}

function candidates(elf: ElfFile, directories: readonly string[]): string[] {
  const found: string[] = [];
  const id = elf.buildId;
  if (id !== undefined && id.length > 2) {
    for (const dir of directories) found.push(join(dir, '.build-id', id.slice(0, 2), `${id.slice(2)}.debug`));
  }
  const link = debugLink(elf);
  if (link !== undefined) {
    const home = dirname(resolve(elf.path));
    found.push(join(home, link.name), join(home, '.debug', link.name));
    for (const dir of directories) found.push(join(dir, home, link.name), join(dir, link.name));
  }
  return found;
}

/** Why a file is not the program's debug file. */
function mismatch(elf: ElfFile, file: ElfFile): string | undefined {
  if (file.machine !== elf.machine) return 'it is for another architecture';
  const [wanted, found] = [elf.buildId, file.buildId];
  if (wanted !== undefined && found !== undefined) {
    return wanted === found ? undefined : `its build id is ${found}, the program's is ${wanted}`;
  }
  const link = debugLink(elf);
  return link === undefined || fileCrc(file.path) === link.crc ? undefined : 'its CRC is not the one in .gnu_debuglink';
}

function isSame(a: string, b: string): boolean {
  return realPath(a) === realPath(b);
}

/** CRC-32 of a whole file, read piece by piece. */
function fileCrc(path: string): number {
  const fd = openSync(path, 'r');
  try {
    const piece = new Uint8Array(1 << 20);
    let crc = 0;
    for (let rest = fstatSync(fd).size; rest > 0; ) {
      const got = readSync(fd, piece, 0, Math.min(rest, piece.length), null);
      if (got === 0) break;
      crc = crc32(piece.subarray(0, got), crc);
      rest -= got;
    }
    return crc >>> 0;
  } finally {
    closeSync(fd);
  }
}

/** Behind links. The program of a process can be opened when its file is gone, and has no other path then. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
