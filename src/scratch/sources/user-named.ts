import { isRefusal } from '../../base/refusal.js';
import { type ElfFile, SHF } from '../../elf/index.js';
import { type ReservedMemory, reservedScratch } from '../reserved-memory.js';
import { type ScratchSource, unusable } from '../source.js';
import { slackOf } from '../text-slack.js';

/** `--scratch` and `--scratch-symbol`. No other source is asked beside them. */
export const userNamed: ScratchSource = {
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
