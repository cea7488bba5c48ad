import { partOf } from '../base/logger.js';
import { isRefusal, type Refusal } from '../base/refusal.js';
import { hasOwnFirmware, turnsPagingOn } from '../target/index.js';
import type { MapRefusal, Scratch } from './scratch.js';
import type { ScratchRequest, SourceResult } from './source.js';
import { sources } from './sources.js';

const nothing =
  'no memory for trampolines is known here: `rsptrace run` brings its own, --scratch ADDR,SIZE and --scratch-symbol name some, a section .rsptrace of the program reserves some';

/**
 * Finds memory for trampolines, while the target is stopped in the program. Asks the sources in their order.
 * @throws RsptraceError `SCRATCH_UNUSABLE` for unusable memory that the user named
 */
export async function findScratch(request: ScratchRequest): Promise<Scratch | Refusal | MapRefusal> {
  const { arch, elf, process, known = {}, logger } = request;
  const pages = turnsPagingOn(elf, arch);
  if (pages === undefined && process === undefined) return { refused: `page tables on ${arch.name} are not known` };
  // A kernel may set its firmware up only now.
  known.ownFirmware ||= process === undefined && (await hasOwnFirmware(request.session, arch, elf));
  const facts = { known, pages: pages ?? false, ownFirmware: known.ownFirmware };
  let why: string | undefined;
  for (const source of sources) {
    const found = await source.find({ ...request, ...facts });
    if (logger) partOf(logger, 'scratch').debug(...logOf(source.name, found));
    if (!('none' in found)) return found;
    why = found.none ?? why;
  }
  return { refused: why ?? nothing };
}

/** Before anything is written to the target: why there will be no memory; undefined if some source may have it. */
export async function memoryMissing(request: ScratchRequest): Promise<Refusal | undefined> {
  const { arch, elf, process, known = {} } = request;
  const pages = turnsPagingOn(elf, arch);
  if (pages === undefined && process === undefined) return { refused: `page tables on ${arch.name} are not known` };
  let why: Refusal = { refused: nothing };
  for (const source of sources) {
    const expected = await source.expects({ ...request, known, pages: pages ?? false, ownFirmware: false });
    if (expected === true) return undefined;
    if (expected) why = expected;
  }
  return why;
}

function logOf(source: string, found: SourceResult): [object, string] {
  if ('none' in found) return [{ source, none: found.none }, 'scratch memory: no such source here'];
  if (isRefusal(found)) return [{ source, refused: found.refused }, 'scratch memory refused'];
  return [{ source }, 'scratch memory found'];
}
