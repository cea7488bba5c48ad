import type { Addr } from '../../base/addr.js';
import { ElfFile } from '../../elf/index.js';
import { parseMaps } from '../../facts/index.js';
import type { Session } from '../../rsp/index.js';
import type { Scratch } from '../memory/scratch.js';
import { unavailable } from '../memory/system-calls.js';

const PT_LOAD = 1;

/** Where a program or library itself defines a function of this name. */
export function defined(elf: ElfFile, name: string): Addr | undefined {
  return elf.symbols.named(name).find(({ type, address }) => type === 'function' && address !== 0n)?.address;
}

/**
 * A library of the process, with its addresses there. Undefined if no loaded path matches.
 * @throws RsptraceError `SCRATCH_UNAVAILABLE` if the stub does not list the libraries
 */
export async function loadedLibrary(session: Session, { calls }: Scratch, name: RegExp): Promise<ElfFile | undefined> {
  const maps = calls && (await session.remoteFile(`/proc/${calls.pid}/maps`));
  if (!maps) throw unavailable('the stub does not tell what the process has loaded');
  const mapping = parseMaps(new TextDecoder('latin1').decode(maps)).find(({ path }) => name.test(path));
  if (!mapping) return undefined;
  const file = await session.remoteFile(mapping.path);
  if (!file) throw unavailable(`${mapping.path} cannot be read`);
  const elf = ElfFile.parse(file, mapping.path);
  const lowest = elf.segments.find(({ type }) => type === PT_LOAD)?.address ?? (0n as Addr);
  return elf.loadedAt(mapping.start - (lowest & ~0xfffn));
}
