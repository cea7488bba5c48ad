import { addOffset } from '../base/addr.js';
import { isRefusal, type Refusal, RsptraceError } from '../base/errors.js';
import { partOf } from '../base/logger.js';
import { type ElfFile, SHF } from '../elf/index.js';
import { hasOwnFirmware, turnsPagingOn } from '../target/index.js';
import { mapIntoProcess } from './linux-process.js';
import { type ReservedMemory, reservedIn, reservedScratch } from './reserved-memory.js';
import type { MapRefusal, Region, Scratch } from './scratch.js';
import { type ScratchRequest, type ScratchSource, type SourceRequest, type SourceResult, unusable } from './source.js';
import { slackOf } from './text-slack.js';
import { topOfRam } from './top-of-ram.js';

const PT_LOAD = 1;
const PF_X = 1;

/** `--scratch` and `--scratch-symbol`. No other source is asked next to them. */
const userNamed: ScratchSource = {
  name: 'what the user named',
  there: ({ given }) =>
    given &&
    (async (request) => {
      const { session, arch, elf, pages, codeSize, ram } = request;
      const constant = given.owned ? undefined : constantIn(elf, given);
      if (constant !== undefined) throw unusable(`${given.name} cannot be used: the program's ${constant} lies there`);
      const slack = await slackOf(request);
      const scratch = await reservedScratch(session, arch, given, { pages, slack, codeSize, ram });
      if (isRefusal(scratch) && !scratch.later) throw unusable(scratch.refused);
      return scratch;
    }),
};

/** Begins the reason. */
export const topOfRamRefused = '--scratch top cannot be had';

/** `--scratch top`: the end of RAM, where the kernel leaves it alone. No other source is asked next to it. */
const endOfRam: ScratchSource = {
  name: 'the end of RAM',
  there: ({ top }) => (top ? findEndOfRam : undefined),
};

async function findEndOfRam(request: SourceRequest): Promise<SourceResult> {
  const { session, arch, elf, known, process, ram } = request;
  if (process !== undefined) throw unusable('--scratch top is for machines, and this is a process');
  known.top ??= await topOfRam(session, elf, ram);
  const { top: piece } = known;
  const scratch = isRefusal(piece) ? { ...piece, later: false } : await piece.map(arch, request);
  if (isRefusal(scratch) && !scratch.later) throw unusable(`${topOfRamRefused}: ${scratch.refused}`);
  return scratch;
}

/** Memory that a process of Linux maps for us. */
const processMap: ScratchSource = {
  name: 'memory mapped into the process',
  there: ({ process }) =>
    process &&
    (async ({ session, arch, elf, logger }) => {
      const text = textOf(elf);
      if (text === undefined) return { none: 'the ELF has no code' };
      try {
        return await mapIntoProcess({ session, arch, text, ...process, ...(logger ? { logger } : {}) });
      } catch (error) {
        if (error instanceof RsptraceError && error.code === 'SCRATCH_UNAVAILABLE') return { none: error.message };
        throw error;
      }
    }),
};

/** What the program sets aside: its section `.rsptrace`, or the statics of examples/rsptrace-scratch. */
const reservedSection: ScratchSource = {
  name: 'a section that the program reserves',
  there: ({ elf }) => {
    const section = reservedIn(elf);
    return (
      section &&
      (async (request) => {
        const { session, arch, pages, codeSize, ram } = request;
        return reservedScratch(session, arch, section, { pages, slack: await slackOf(request), codeSize, ram });
      })
    );
  },
};

/** RAM of a machine that rsptrace started, which the guest does not know of. */
const hiddenRam: ScratchSource = {
  name: 'hidden RAM',
  there: ({ hidden, process }) => {
    if (process !== undefined || hidden === undefined) return undefined;
    return isRefusal(hidden) ? hidden : (request) => hidden.map(request.arch, request, request.ram);
  },
};

/** In the order in which they are asked. */
const sources: readonly ScratchSource[] = [userNamed, endOfRam, processMap, reservedSection, hiddenRam];

const nothing =
  'no memory for trampolines is known here: `rsptrace run` brings its own, --scratch ADDR,SIZE and --scratch-symbol name some, a section .rsptrace of the program reserves some';

/**
 * Finds memory for trampolines, while the target is stopped in the program. Asks the sources in their order.
 * @throws RsptraceError `SCRATCH_UNUSABLE` for unusable memory that the user named
 */
export async function findScratch(request: ScratchRequest): Promise<Scratch | Refusal | MapRefusal> {
  const { arch, elf, process, known = {}, logger } = request;
  const pages = turnsPagingOn(elf, arch);
  if (pages === undefined && process === undefined) return notKnown(request);
  const caches = await staleCaches(request);
  if (caches) return caches;
  // A kernel may set its firmware up only now.
  known.ownFirmware ||= process === undefined && (await hasOwnFirmware(request.session, arch, elf));
  const facts = { known, pages: pages ?? false, ownFirmware: known.ownFirmware };
  let why: string | undefined;
  for (const { name, there } of sources) {
    const find = there(request);
    const found = typeof find === 'function' ? await find({ ...request, ...facts }) : { none: find?.refused };
    if (logger) partOf(logger, 'scratch').debug(...logOf(name, found));
    if (!('none' in found)) return found;
    why = found.none ?? why;
  }
  return { refused: why ?? nothing };
}

/** Before anything is written to the target: why there will be no memory; undefined if some source may have it. */
export async function memoryMissing(request: ScratchRequest): Promise<Refusal | undefined> {
  const { arch, elf, process } = request;
  if (process === undefined && turnsPagingOn(elf, arch) === undefined) return notKnown(request);
  const caches = await staleCaches(request);
  if (caches) return caches;
  const expected = sources.map(({ there }) => there(request));
  if (expected.some((find) => typeof find === 'function')) return undefined;
  return expected.findLast((find) => typeof find === 'object') ?? { refused: nothing };
}

/** See `ProbeCode.onlyEmulated`. */
async function staleCaches({ session, arch, process }: ScratchRequest): Promise<Refusal | undefined> {
  const why = process === undefined ? arch.probeCode?.onlyEmulated : undefined;
  return why === undefined || (await session.stub()).name === 'qemu-system' ? undefined : { refused: why };
}

function notKnown({ arch }: ScratchRequest): Refusal {
  return { refused: `page tables on ${arch.name} are not known` };
}

function logOf(source: string, found: SourceResult): [object, string] {
  if ('none' in found) return [{ source, none: found.none }, 'scratch memory: no such source here'];
  if (isRefusal(found)) return [{ source, refused: found.refused }, 'scratch memory refused'];
  return [{ source }, 'scratch memory found'];
}

/**
 * A section of code or constants that lies in memory which the user declares free. A section that the program writes
 * to may be a static reserved for us.
 */
function constantIn(elf: ElfFile, { address, size }: ReservedMemory): string | undefined {
  const end = address + BigInt(size);
  const constant = elf.sections.filter(
    ({ flags }) => (flags & SHF.ALLOC) !== 0 && (flags & (SHF.WRITE | SHF.EXECINSTR)) !== SHF.WRITE,
  );
  return constant.find((one) => one.size > 0 && one.address < end && one.address + BigInt(one.size) > address)?.name;
}

/** From the program's first executable byte to its last. */
function textOf(elf: ElfFile): Region | undefined {
  const code = elf.segments.filter(({ type, flags }) => type === PT_LOAD && (flags & PF_X) !== 0);
  const ends = code.flatMap(({ address, memorySize }) => [address, addOffset(address, memorySize)]);
  const [start, end] = ends.toSorted((a, b) => (a < b ? -1 : 1)).filter((_, i) => i === 0 || i === ends.length - 1);
  if (start === undefined || end === undefined) return undefined;
  return { address: start, size: Number(end - start) };
}
