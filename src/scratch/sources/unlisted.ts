import { isRefusal } from '../../base/refusal.js';
import type { ScratchSource } from '../source.js';
import { unlistedRam } from '../unlisted-ram.js';

/** RAM of a machine that somebody else started, if the map that its guest gets leaves some out. */
export const unlisted: ScratchSource = {
  name: 'RAM that the guest is not told of',
  expects: async ({ session, elf, process, ram }) =>
    process === undefined && !isRefusal(await unlistedRam(session, elf, ram)),
  async find({ session, arch, elf, text, pages, ownFirmware, process, known, logger, ram }) {
    if (process !== undefined) return { none: undefined };
    known.unlisted ??= await unlistedRam(session, elf, ram);
    if (!isRefusal(known.unlisted)) return known.unlisted.map(arch, { text, pages, ownFirmware });
    // Most machines have none, so the user is not told.
    logger?.trace({ why: known.unlisted.refused }, 'no RAM is left out of the maps');
    return { none: undefined };
  },
};
