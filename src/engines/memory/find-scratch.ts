import type { Architecture } from '../../arch/index.js';
import { type Addr, addOffset } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { isRefusal, type Refusal } from '../../base/refusal.js';
import type { ElfFile } from '../../elf/index.js';
import { turnsPagingOn } from '../../facts/index.js';
import type { Session } from '../../rsp/index.js';
import { GuestAllocator, type Intercept } from './guest-allocator.js';
import type { HiddenMemory } from './hidden-memory.js';
import { mapIntoProcess } from './linux-process.js';
import type { RamPiece } from './ram-piece.js';
import { type ReservedMemory, reservedScratch, sectionMemory } from './reserved-memory.js';
import type { MapRefusal, Region, Scratch } from './scratch.js';
import { textSlack } from './text-slack.js';
import { unlistedRam } from './unlisted-ram.js';

export interface ScratchSources {
  /** RAM of a machine that rsptrace started; or why it has none for us. */
  readonly hidden?: HiddenMemory | Refusal;
  /** What the user named. */
  readonly given?: ReservedMemory;
}

export interface ScratchRequest extends ScratchSources {
  readonly session: Session;
  readonly arch: Architecture;
  readonly elf: ElfFile;
  /** An address of the program's code that trampolines must be near. */
  readonly text: Addr;
  /** Bytes of code that there may be, if the memory can be divided freely. */
  readonly codeSize?: number | undefined;
  /** Bytes wanted of a process of Linux, if the target is one. */
  readonly process?: { readonly codeSize: number; readonly dataSize: number } | undefined;
  /** What is found out once, however often memory is asked for. */
  readonly known?: Known;
  /** Without it the program's allocator is not asked, only named as the last choice. */
  readonly intercept?: Intercept;
  readonly logger?: Logger;
}

export interface Known {
  untold?: RamPiece | Refusal;
  allocator?: GuestAllocator;
}

const nothing =
  'no memory for trampolines is known here: `rsptrace run` brings its own, --scratch ADDR,SIZE and --scratch-symbol name some, a section .rsptrace of the program reserves some';
const PT_LOAD = 1;
const PF_X = 1;
const SHF_WRITE = 1;
const SHF_ALLOC = 2;
const SHF_EXECINSTR = 4;

/**
 * Finds memory for trampolines. Called while the target is stopped in the program. The sources in order.
 *
 * 1. What the user named.
 * 2. Memory mapped into a process.
 * 3. What the program sets aside (section `.rsptrace`).
 * 4. Hidden RAM of a machine that rsptrace started.
 * 5. RAM that the guest of another machine is not told about.
 * 6. The program's allocator.
 *
 * @throws RsptraceError `SCRATCH_UNUSABLE` for what the user named and cannot be used
 */
export async function findScratch(request: ScratchRequest): Promise<Scratch | Refusal | MapRefusal> {
  const { session, arch, elf, text, hidden, given, codeSize } = request;
  const mapped = given === undefined && request.process ? await processScratch(request, request.process) : undefined;
  if (mapped !== undefined && !isRefusal(mapped)) return tried(request, 'memory mapped into the process', mapped);
  const pages = turnsPagingOn(elf, arch);
  if (pages === undefined) return { refused: `page tables on ${arch.name} are not known` };
  const named = given ?? sectionMemory(elf);
  const constant = given && !given.owned ? constantIn(elf, given) : undefined;
  if (given && constant !== undefined)
    return unusable(`${given.name} cannot be used: the program's ${constant} lies there`, given);
  if (named !== undefined) {
    const options = { pages, slack: await slackOf(request), codeSize };
    const scratch = tried(request, named.name, await reservedScratch(session, arch, named, options));
    if (isRefusal(scratch)) return scratch.later ? scratch : unusable(scratch.refused, given);
    return scratch;
  }
  if (mapped !== undefined) return tried(request, 'memory mapped into the process', mapped);
  if (hidden !== undefined && !isRefusal(hidden))
    return tried(request, 'hidden RAM', await hidden.map(arch, { text, pages, codeSize }));
  tried(request, 'hidden RAM', hidden);
  const { known = {} } = request;
  known.untold ??= tried(request, 'RAM that the guest is not told of', await unlistedRam(session, elf));
  if (!isRefusal(known.untold)) return known.untold.map(arch, { text, pages });
  known.allocator ??= new GuestAllocator(session, arch, elf, request.logger);
  const allocated = await known.allocator.scratch({ text, pages, codeSize }, request.intercept);
  return tried(request, "the program's allocator", allocated) ?? hidden ?? { refused: nothing };
}

/** Logs the result of one source of memory. */
function tried<T extends object | undefined>({ logger }: ScratchRequest, source: string, found: T): T {
  const refused = found !== undefined && isRefusal(found) ? found.refused : undefined;
  if (refused !== undefined) logger?.trace({ source, refused }, 'scratch memory refused');
  else logger?.trace({ source }, found === undefined ? 'scratch memory: no such source here' : 'scratch memory found');
  return found;
}

async function processScratch(
  { session, arch, elf, logger }: ScratchRequest,
  { codeSize, dataSize }: NonNullable<ScratchRequest['process']>,
): Promise<Scratch | Refusal> {
  const text = textOf(elf);
  if (text === undefined) return { refused: 'the ELF has no code' };
  try {
    return await mapIntoProcess({ session, arch, text, codeSize, dataSize, ...(logger ? { logger } : {}) });
  } catch (error) {
    if (error instanceof RsptraceError && error.code === 'SCRATCH_UNAVAILABLE') return { refused: error.message };
    throw error;
  }
}

/**
 * A section of code or constants that lies in memory which the user declares free. A section that the program writes
 * to may be a static reserved for us.
 */
function constantIn(elf: ElfFile, { address, size }: ReservedMemory): string | undefined {
  const end = address + BigInt(size);
  const constant = elf.sections.filter(
    ({ flags }) => (flags & SHF_ALLOC) !== 0 && (flags & (SHF_WRITE | SHF_EXECINSTR)) !== SHF_WRITE,
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

/** Executable zero bytes behind the program's text, if there are any. */
export async function slackOf({
  session,
  arch,
  elf,
}: Pick<ScratchRequest, 'session' | 'arch' | 'elf'>): Promise<Region | undefined> {
  const slack = await textSlack(session, arch, elf);
  return isRefusal(slack) ? undefined : slack;
}

/** For memory that only the user vouches for: why it cannot be used. */
export function unusableScratch(scratch: Scratch, wrong: string): RsptraceError {
  return new RsptraceError('SCRATCH_UNUSABLE', `${scratch.source} cannot be used: ${wrong}`, { hint });
}

const hint = '--engine stop needs no memory in the target';

function unusable(why: string, given: ReservedMemory | undefined): Refusal {
  if (given === undefined) return { refused: why };
  throw new RsptraceError('SCRATCH_UNUSABLE', why, { hint });
}
