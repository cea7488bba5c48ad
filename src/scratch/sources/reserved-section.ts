import { reservedIn, reservedScratch } from '../reserved-memory.js';
import type { ScratchSource } from '../source.js';
import { slackOf } from '../text-slack.js';

/** What the program sets aside: its section `.rsptrace`, or the statics of examples/rsptrace-scratch. */
export const reservedSection: ScratchSource = {
  name: 'a section that the program reserves',
  expects: async ({ elf }) => reservedIn(elf) !== undefined,
  async find(request) {
    const { session, arch, elf, pages, codeSize, ram } = request;
    const section = reservedIn(elf);
    if (section === undefined) return { none: undefined };
    return reservedScratch(session, arch, section, { pages, slack: await slackOf(request), codeSize, ram });
  },
};
