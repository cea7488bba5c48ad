/*
 * The shared libraries of a Linux process, at the addresses where they are loaded. They are found in:
 *
 *   qXfer:libraries-svr4   what the dynamic loader says, from its first call on
 *   /proc/PID/maps         before that, and where the stub has no such list: files with code in them
 *   AT_SYSINFO_EHDR        the vDSO, which is in no file: read from memory
 *
 * A library's file is read from this machine, if it is the one in the process's memory: by build id, else by ELF
 * headers. Else it is read through the stub (`vFile`).
 */

import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { type Addr, addr } from '../base/addr.js';
import { messageOf, RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { MemoryReader } from '../base/memory-reader.js';
import { type DebugFileOptions, ElfFile } from '../elf/index.js';
import { isProcess, parseLibraryList, type Session } from '../rsp/index.js';
import { AT, auxvAddress, auxvOf, readAuxv } from './auxv.js';
import { type Mapping, mapsOf, processId, processMappings } from './process-memory.js';

export interface Libraries {
  /** At the addresses where they were loaded. */
  readonly loaded: readonly ElfFile[];
  /** Libraries of the process that could not be read. */
  readonly missing: readonly { readonly name: string; readonly why: string }[];
}

interface LibraryOptions extends Pick<DebugFileOptions, 'debugDirs'> {
  readonly logger?: Logger;
  /** Reads the process; the stub by default. */
  readonly memory?: MemoryReader;
}

/** Libraries whose files are read when the process runs again. */
interface SeenLibraries {
  open(): Promise<Libraries>;
}

/** One library of the process: `bias` if a list gives it, else the address of its first byte. */
interface Listed {
  readonly name: string;
  readonly bias?: Addr;
  readonly start?: Addr;
}

const PAGE = 0x1000n;
/** Bytes of headers that are compared if there is no build id. */
const HEADERS = 512;
/** An ELF note header's type 3 and its name, `GNU`: what is in one page with it has a build id there. */
const BUILD_ID = Buffer.from('03000000474e5500', 'hex');
/** Of the vDSO: two pages of code in the kernels of today. */
const MOST_VDSO = 16 * 4096;

/** The libraries of the process at a stub; none if it is no process. `program` is left out, because it is known. */
export async function loadedLibraries(
  session: Session,
  program: ElfFile,
  options: LibraryOptions = {},
): Promise<Libraries> {
  return (await seeLibraries(session, program, options)).open();
}

/** Asks the process only what must be asked while it stands; the files are read by `open`, unless the stub has them. */
export async function seeLibraries(
  session: Session,
  program: ElfFile,
  options: LibraryOptions = {},
): Promise<SeenLibraries> {
  if (!isProcess(session.features)) return { open: async () => ({ loaded: [], missing: [] }) };
  const memory = options.memory ?? session.memory();
  const vdso = await vdsoOf(memory, await readAuxv(session));
  const found: (readonly [name: string, opened: () => Promise<ElfFile>])[] = [];
  const missing: { name: string; why: string }[] = [];
  for (const each of await listed(session)) {
    if (await hasFirstPage(each, memory)) found.push([each.name, () => openHere(each, options)]);
    else {
      await collect(missing, each.name, async () => {
        const elf = await open(session, memory, each, options);
        found.push([each.name, async () => elf]);
      });
    }
  }
  return {
    async open() {
      const known = [program];
      for (const [name, opened] of found) {
        await collect(missing, name, async () => {
          const elf = await opened();
          if (!known.some((other) => overlap(other, elf))) known.push(elf);
        });
      }
      return { loaded: [...vdso, ...known.slice(1)], missing };
    },
  };
}

/** The libraries of a core file, by the files that were mapped; those of other content than the core's are missing. */
export async function mappedLibraries(
  files: readonly { readonly path: string; readonly start: Addr }[],
  auxv: ReadonlyMap<number, bigint>,
  { memory, program, ...options }: LibraryOptions & { readonly memory: MemoryReader; readonly program: ElfFile },
): Promise<Libraries> {
  const loaded = await vdsoOf(memory, auxv);
  const missing: { name: string; why: string }[] = [];
  for (const library of firstOf(files)) {
    await collect(missing, library.name, async () => {
      const elf = await openHere(library, options);
      if (overlap(program, elf)) return;
      if (!(await isThere(elf, memory))) throw new RsptraceError('LIBRARY_UNREADABLE', 'another file is in the core');
      loaded.push(elf);
    });
  }
  return { loaded, missing };
}

/** The libraries of a process of this machine that runs. */
export async function librariesOfProcess(
  pid: number,
  program: ElfFile,
  memory: MemoryReader,
  options: LibraryOptions = {},
): Promise<Libraries> {
  return mappedLibraries(withCode(mapsOf(pid)), auxvOf(pid), { ...options, memory, program });
}

/** The mappings of files that have code in some of them. */
function withCode(maps: readonly Mapping[]): Mapping[] {
  const code = new Set(maps.filter(({ permissions }) => permissions[2] === 'x').map(({ path }) => path));
  return maps.filter(({ path }) => code.has(path));
}

/** Each file, at its first mapping. */
function firstOf(files: readonly { readonly path: string; readonly start: Addr }[]): Listed[] {
  const starts = new Map<string, Addr>();
  for (const { path, start } of files) if (path.startsWith('/') && !starts.has(path)) starts.set(path, start);
  return [...starts].map(([name, start]) => ({ name, start }));
}

/** Keeps why a library cannot be read; a broken link ends all. */
async function collect(
  missing: { name: string; why: string }[],
  name: string,
  read: () => Promise<void>,
): Promise<void> {
  try {
    await read();
  } catch (error) {
    if (!(error instanceof RsptraceError)) throw error;
    if (error.code.startsWith('RSP_')) throw error;
    missing.push({ name, why: messageOf(error) });
  }
}

/** Whether the file of that name here begins with the process's own first page, with a build id in it. */
async function hasFirstPage({ name, bias, start }: Listed, memory: MemoryReader): Promise<boolean> {
  const address = bias ?? start;
  const page = Buffer.alloc(Number(PAGE));
  try {
    const file = openSync(name, 'r');
    try {
      if (readSync(file, page) < page.length) return false;
    } finally {
      closeSync(file);
    }
  } catch {
    return false;
  }
  if (address === undefined || !page.includes(BUILD_ID)) return false;
  const found = await memory.read(address, page.length);
  return found !== undefined && page.equals(found);
}

async function listed(session: Session): Promise<Listed[]> {
  const list = await session.object('libraries-svr4');
  const libraries = list === undefined ? [] : parseLibraryList(Buffer.from(list).toString('utf8'));
  // The vDSO has a name and no file.
  const files = libraries.filter(({ name }) => name.startsWith('/'));
  return files.length > 0 ? files : firstOf(withCode((await processMappings(session)) ?? []));
}

/** @throws RsptraceError `LIBRARY_UNREADABLE`, or what {@link ElfFile.open} throws */
async function open(
  session: Session,
  memory: MemoryReader,
  library: Listed,
  options: LibraryOptions,
): Promise<ElfFile> {
  const { name } = library;
  if (existsSync(name)) {
    const elf = await openHere(library, options);
    if (await isThere(elf, memory)) return elf;
  }
  const pid = await processId(session);
  for (const path of [name, ...(pid === undefined ? [] : [`/proc/${pid}/root${name}`])]) {
    const bytes = await session.remoteFile(path);
    if (bytes === undefined) continue;
    const elf = loadedAs(ElfFile.parse(bytes, name), library);
    if (await isThere(elf, memory)) return elf;
  }
  throw new RsptraceError(
    'LIBRARY_UNREADABLE',
    existsSync(name)
      ? 'the file of that name is another one than the process has loaded, and the stub does not give its own'
      : 'there is no such file here, and the stub does not give its own',
  );
}

async function openHere(library: Listed, { debugDirs, logger }: LibraryOptions): Promise<ElfFile> {
  const options = { ...(debugDirs ? { debugDirs } : {}), ...(logger ? { logger } : {}), debugFile: undefined };
  return loadedAs(await ElfFile.open(library.name, options), library);
}

function loadedAs(elf: ElfFile, { bias, start }: Listed): ElfFile {
  if (bias !== undefined) return elf.loadedAt(bias);
  const lowest = elf.loads[0]?.address ?? addr(0);
  return elf.loadedAt(addr((start ?? addr(0)) - (lowest & ~(PAGE - 1n))));
}

/** Whether the process's memory has this file's build id, or its headers, at its load address. */
async function isThere(elf: ElfFile, memory: MemoryReader): Promise<boolean> {
  const note = elf.sections.find(({ name }) => name === '.note.gnu.build-id');
  const [first] = elf.loads;
  const [address, size] = note ? [note.address, note.size] : [first?.address, Math.min(HEADERS, first?.fileSize ?? 0)];
  if (address === undefined || size === 0 || size > 4096) return false;
  const [expected, found] = [elf.bytesAt(address, size), await memory.read(address, size)];
  return expected !== undefined && found !== undefined && Buffer.compare(expected, found) === 0;
}

function overlap(a: ElfFile, b: ElfFile): boolean {
  const [first, second] = [a, b].map((elf) => elf.loads[0]?.address);
  return first !== undefined && first === second;
}

/** The ELF that the kernel maps into every process: as many of its pages as can be read; none if that is none. */
async function vdsoOf(memory: MemoryReader, auxv: ReadonlyMap<number, bigint> | undefined): Promise<ElfFile[]> {
  const address = auxvAddress(auxv, AT.SYSINFO_EHDR);
  if (address === undefined) return [];
  let bytes: Uint8Array | undefined;
  for (let size = MOST_VDSO; size >= 4096 && bytes === undefined; size >>= 1) bytes = await memory.read(address, size);
  if (bytes === undefined) return [];
  try {
    return [ElfFile.parse(bytes, '[vdso]').loadedAt(address)];
  } catch (error) {
    if (!(error instanceof RsptraceError)) throw error;
    return [];
  }
}
