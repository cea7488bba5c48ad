import { readFileSync, statSync } from 'node:fs';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { type Scratch, unavailable } from '../scratch/index.js';
import { AT, auxvAddress, type LetRun, parseMaps, readAuxv } from '../target/index.js';
import type { Piece } from './ring.js';

const PT_LOAD = 1;

/** The function that throws: a file without it never unwinds. */
export const throws = '_Unwind_RaiseException';
/** The function that allocates, of every C library. */
export const allocates = 'malloc';
/** The paths of C libraries. */
const cLibrary = /\/(libc[.-]|ld-musl)/;
/** A function of every C library. */
const ends = 'exit';

/** A function of this name that a program or library itself defines. */
export function functionIn(elf: ElfFile, name: string): Piece | undefined {
  const found = elf.symbols.named(name).find(({ type, address }) => type === 'function' && address !== 0n);
  return found && { address: found.address, length: found.size };
}

/** Where it does so. */
export function defined(elf: ElfFile, name: string): Addr | undefined {
  return functionIn(elf, name)?.address;
}

/** The process's files with code, at the addresses of their first bytes. */
async function mappedFiles(session: Session, { calls }: Scratch): Promise<ReadonlyMap<string, Addr>> {
  const maps = calls && (await session.remoteFile(`/proc/${calls.pid}/maps`));
  if (!maps) throw unavailable('the stub does not tell what the process has loaded');
  return startsIn(new TextDecoder('latin1').decode(maps));
}

function startsIn(maps: string): ReadonlyMap<string, Addr> {
  const all = parseMaps(maps).filter(({ path }) => path.startsWith('/'));
  const withCode = new Set(all.filter(({ permissions }) => permissions[2] === 'x').map(({ path }) => path));
  const starts = new Map<string, Addr>();
  for (const { path, start } of all) if (withCode.has(path) && !starts.has(path)) starts.set(path, start);
  return starts;
}

function loadedAt(file: Uint8Array, path: string, start: Addr): ElfFile {
  const elf = ElfFile.parse(file, path);
  const lowest = elf.segments.find(({ type }) => type === PT_LOAD)?.address ?? (0n as Addr);
  return elf.loadedAt(start - (lowest & ~0xfffn));
}

/** The file as it is loaded, if it defines the function. */
function definingAt(file: Uint8Array, path: string, start: Addr, name: string): ElfFile | undefined {
  if (!Buffer.from(file.buffer, file.byteOffset, file.length).includes(name)) return undefined;
  const elf = loadedAt(file, path, start);
  return defined(elf, name) === undefined ? undefined : elf;
}

/** What was read of files before a process stood that has loaded them: by file, place and function. */
const readBefore = new Map<string, ElfFile | undefined>();

/** Undefined if that is no file which can be found here. */
function keyOf(pid: number, path: string, start: Addr, name: string): string | undefined {
  const stat = statSync(`/proc/${pid}/root${path}`, { bigint: true, throwIfNoEntry: false });
  return stat?.isFile() ? [stat.dev, stat.ino, stat.size, stat.mtimeNs, start, name].join() : undefined;
}

/** Reads the files that a process of this machine has loaded, so that it need not stand for that. */
export function readLoadedFiles(pid: number): void {
  try {
    for (const [path, start] of startsIn(readFileSync(`/proc/${pid}/maps`, 'latin1'))) {
      const wanted = [throws, allocates, ...(cLibrary.test(path) ? [ends] : [])];
      const file = readFileSync(`/proc/${pid}/root${path}`);
      for (const name of wanted) {
        const key = keyOf(pid, path, start, name);
        if (key !== undefined) readBefore.set(key, definingAt(file, path, start, name));
      }
    }
  } catch {
    // What cannot be read now is asked for later.
  }
}

/** A file of the process: its path, and where its first byte lies. */
type Loaded = readonly [path: string, start: Addr];

/** A file of the process, if it defines the function; `isLibrary`: it must be readable. */
async function definingFile(
  session: Session,
  [path, start]: Loaded,
  name: string,
  { isLibrary, letRun }: { readonly isLibrary: boolean; readonly letRun?: LetRun | undefined },
): Promise<ElfFile | undefined> {
  const { processHere: pid } = session;
  const key = pid === undefined ? undefined : keyOf(pid, path, start, name);
  if (key !== undefined && readBefore.has(key)) return readBefore.get(key);
  const file = await session.remoteFile(path, letRun);
  if (!file && isLibrary) throw unavailable(`${path} cannot be read`);
  return file && definingAt(file, path, start, name);
}

/**
 * The function by which a process ends, of its C library. Undefined without such a library.
 * @throws RsptraceError `SCRATCH_UNAVAILABLE` if the stub does not list the libraries
 */
export async function exitOf(session: Session, scratch: Scratch, elf: ElfFile): Promise<Addr | undefined> {
  const own = defined(elf, ends);
  if (own !== undefined) return own;
  const found = [...(await mappedFiles(session, scratch))].find(([path]) => cLibrary.test(path));
  const library = found && (await definingFile(session, found, ends, { isLibrary: true }));
  return library && defined(library, ends);
}

/** The files of a process that define a function, as they come and go. */
export class DefiningFiles {
  readonly #session: Session;
  readonly #scratch: Scratch;
  readonly #name: string;
  /** By path and start: undefined for files that do not define it. */
  #known: ReadonlyMap<string, ElfFile | undefined> = new Map();

  constructor(session: Session, scratch: Scratch, name: string) {
    this.#session = session;
    this.#scratch = scratch;
    this.#name = name;
  }

  /**
   * Those that are mapped now; always the same object for the same one. With `letRun` the process runs on while they
   * are read.
   * @throws RsptraceError `SCRATCH_UNAVAILABLE` if one cannot be read
   */
  async now(letRun?: LetRun): Promise<ElfFile[]> {
    const known = new Map<string, ElfFile | undefined>();
    for (const [path, start] of await mappedFiles(this.#session, this.#scratch)) {
      const key = `${path} ${start}`;
      known.set(key, this.#known.has(key) ? this.#known.get(key) : await this.#read(path, start, letRun));
    }
    this.#known = known;
    return [...known.values()].filter((elf) => elf !== undefined);
  }

  #read(path: string, start: Addr, letRun: LetRun | undefined): Promise<ElfFile | undefined> {
    // Code that a program makes lies in files that are no libraries.
    return definingFile(this.#session, [path, start], this.#name, { isLibrary: /\.so\b/.test(path), letRun });
  }
}

const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const PT_PHDR = 6;
const headerBytes = 56;
const mostHeaders = 256;
const DT_DEBUG = 21n;
const entryBytes = 16;
const mostBytes = 1 << 16;
const brkOffset = 16;

/**
 * The function that the dynamic loader calls at each change of what is loaded (glibc's link.h, "rendezvous with
 * debuggers"; musl's alike). Undefined for a program without a loader. DT_DEBUG of the program's dynamic section points to
 *
 *     struct r_debug { int r_version; struct link_map *r_map; Addr r_brk; ... }
 *
 * @param elf the program, or one of its libraries: which headers are the program's the auxiliary vector says
 * @throws RsptraceError `SCRATCH_UNAVAILABLE` if it cannot be found
 */
export async function loaderStop(session: Session, elf: ElfFile): Promise<Addr | undefined> {
  const segments = (await programSegments(session)) ?? elf.segments;
  if (!segments.some(({ type }) => type === PT_INTERP)) return undefined;
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  const memory = session.memory();
  const bytes = dynamic && (await memory.read(dynamic.address, Math.min(dynamic.memorySize, mostBytes)));
  const view = bytes && new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; view && at + entryBytes <= view.byteLength; at += entryBytes) {
    if (view.getBigUint64(at, true) !== DT_DEBUG) continue;
    const place = await memory.read(addOffset(addr(view.getBigUint64(at + 8, true)), brkOffset), 8);
    const value = place ? new DataView(place.buffer, place.byteOffset, 8).getBigUint64(0, true) : 0n;
    if (value !== 0n) return addr(value);
  }
  throw unavailable('the dynamic loader does not say where it loads libraries, which may bring exceptions');
}

interface ProgramSegment {
  readonly type: number;
  readonly address: Addr;
  readonly memorySize: number;
}

/** The program headers of a process's program (Elf64_Phdr, gABI, chapter 5); undefined if nothing says where. */
async function programSegments(session: Session): Promise<readonly ProgramSegment[] | undefined> {
  const auxv = await readAuxv(session);
  const at = auxvAddress(auxv, AT.PHDR);
  const count = Number(auxv?.get(AT.PHNUM) ?? 0n);
  if (at === undefined || count === 0 || count > mostHeaders) return undefined;
  const bytes = await session.memory().read(at, count * headerBytes);
  if (!bytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const headers = Array.from({ length: count }, (_, i) => ({
    type: view.getUint32(i * headerBytes, true),
    linked: view.getBigUint64(i * headerBytes + 16, true),
    memorySize: Number(view.getBigUint64(i * headerBytes + 40, true)),
  }));
  const own = headers.find(({ type }) => type === PT_PHDR);
  const bias = own === undefined ? 0n : at - own.linked;
  return headers.map(({ type, linked, memorySize }) => ({ type, memorySize, address: addr(linked + bias) }));
}
