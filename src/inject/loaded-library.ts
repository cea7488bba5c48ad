import type { Addr } from '../base/addr.js';
import { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { type Scratch, unavailable } from '../scratch/index.js';
import { parseMaps } from '../target/index.js';

const PT_LOAD = 1;

/** Where a program or library itself defines a function of this name. */
export function defined(elf: ElfFile, name: string): Addr | undefined {
  return elf.symbols.named(name).find(({ type, address }) => type === 'function' && address !== 0n)?.address;
}

/** The process's files with code, at the addresses of their first bytes. */
async function mappedFiles(session: Session, { calls }: Scratch): Promise<ReadonlyMap<string, Addr>> {
  const maps = calls && (await session.remoteFile(`/proc/${calls.pid}/maps`));
  if (!maps) throw unavailable('the stub does not tell what the process has loaded');
  const all = parseMaps(new TextDecoder('latin1').decode(maps)).filter(({ path }) => path.startsWith('/'));
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

/**
 * A library of the process, with its addresses there. Undefined if no loaded path matches.
 * @throws RsptraceError `SCRATCH_UNAVAILABLE` if the stub does not list the libraries
 */
export async function loadedLibrary(session: Session, scratch: Scratch, name: RegExp): Promise<ElfFile | undefined> {
  const found = [...(await mappedFiles(session, scratch))].find(([path]) => name.test(path));
  if (!found) return undefined;
  const [path, start] = found;
  const file = await session.remoteFile(path);
  if (!file) throw unavailable(`${path} cannot be read`);
  return loadedAt(file, path, start);
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
   * Those that are mapped now; always the same object for the same one.
   * @throws RsptraceError `SCRATCH_UNAVAILABLE` if one cannot be read
   */
  async now(): Promise<ElfFile[]> {
    const known = new Map<string, ElfFile | undefined>();
    for (const [path, start] of await mappedFiles(this.#session, this.#scratch)) {
      const key = `${path} ${start}`;
      known.set(key, this.#known.has(key) ? this.#known.get(key) : await this.#look(path, start));
    }
    this.#known = known;
    return [...known.values()].filter((elf) => elf !== undefined);
  }

  async #look(path: string, start: Addr): Promise<ElfFile | undefined> {
    const file = await this.#session.remoteFile(path);
    // Code that a program makes lies in files that are no libraries.
    if (!file && /\.so\b/.test(path)) throw unavailable(`${path} cannot be read`);
    if (!file || !Buffer.from(file.buffer, file.byteOffset, file.length).includes(this.#name)) return undefined;
    const elf = loadedAt(file, path, start);
    return defined(elf, this.#name) === undefined ? undefined : elf;
  }
}
