import { addOffset } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { isRefusal } from '../base/refusal.js';
import { type ElfFile, SHF } from '../elf/index.js';
import { mapIntoProcess } from './linux-process.js';
import { type ReservedMemory, reservedIn, reservedScratch } from './reserved-memory.js';
import type { Region } from './scratch.js';
import { type ScratchSource, unusable } from './source.js';
import { slackOf } from './text-slack.js';
import { topOfRam } from './top-of-ram.js';

const PT_LOAD = 1;
const PF_X = 1;

/** `--scratch` and `--scratch-symbol`. No other source is asked next to them. */
const userNamed: ScratchSource = {
  name: 'what the user named',
  expects: async ({ given }) => given !== undefined,
  async find(request) {
    const { session, arch, elf, given, pages, codeSize, ram } = request;
    if (given === undefined) return { none: undefined };
    const constant = given.owned ? undefined : constantIn(elf, given);
    if (constant !== undefined) throw unusable(`${given.name} cannot be used: the program's ${constant} lies there`);
    const slack = await slackOf(request);
    const scratch = await reservedScratch(session, arch, given, { pages, slack, codeSize, ram });
    if (isRefusal(scratch) && !scratch.later) throw unusable(scratch.refused);
    return scratch;
  },
};

/** `--scratch top`: the end of RAM, where the kernel leaves it alone. No other source is asked next to it. */
const endOfRam: ScratchSource = {
  name: 'the end of RAM',
  expects: async ({ top = false }) => top,
  async find({ session, arch, elf, text, pages, ownFirmware, codeSize, top, known, process, ram }) {
    if (!top) return { none: undefined };
    if (process !== undefined) throw unusable('--scratch top is for machines, and this is a process');
    known.top ??= await topOfRam(session, elf, ram);
    const { top: piece } = known;
    const scratch = isRefusal(piece)
      ? { ...piece, later: false }
      : await piece.map(arch, { text, pages, ownFirmware, codeSize });
    if (isRefusal(scratch) && !scratch.later) throw unusable(`--scratch top cannot be had: ${scratch.refused}`);
    return scratch;
  },
};

/** Memory that a process of Linux maps for us. */
const processMap: ScratchSource = {
  name: 'memory mapped into the process',
  expects: async ({ process }) => process !== undefined,
  async find({ session, arch, elf, process, logger }) {
    if (process === undefined) return { none: undefined };
    const text = textOf(elf);
    if (text === undefined) return { none: 'the ELF has no code' };
    try {
      return await mapIntoProcess({ session, arch, text, ...process, ...(logger ? { logger } : {}) });
    } catch (error) {
      if (error instanceof RsptraceError && error.code === 'SCRATCH_UNAVAILABLE') return { none: error.message };
      throw error;
    }
  },
};

/** What the program sets aside: its section `.rsptrace`, or the statics of examples/rsptrace-scratch. */
const reservedSection: ScratchSource = {
  name: 'a section that the program reserves',
  expects: async ({ elf }) => reservedIn(elf) !== undefined,
  async find(request) {
    const { session, arch, elf, pages, codeSize, ram } = request;
    const section = reservedIn(elf);
    if (section === undefined) return { none: undefined };
    return reservedScratch(session, arch, section, { pages, slack: await slackOf(request), codeSize, ram });
  },
};

/** RAM of a machine that rsptrace started, which the guest does not know of. */
const hiddenRam: ScratchSource = {
  name: 'hidden RAM',
  expects: async ({ hidden, process }) =>
    process === undefined && hidden !== undefined && (isRefusal(hidden) ? hidden : true),
  async find({ arch, text, pages, ownFirmware, codeSize, hidden, process, ram }) {
    if (process !== undefined || hidden === undefined) return { none: undefined };
    return isRefusal(hidden) ? { none: hidden.refused } : hidden.map(arch, { text, pages, ownFirmware, codeSize }, ram);
  },
};

/** In the order in which they are asked. */
export const sources: readonly ScratchSource[] = [userNamed, endOfRam, processMap, reservedSection, hiddenRam];

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
