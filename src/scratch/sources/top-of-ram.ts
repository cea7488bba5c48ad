import { isRefusal } from '../../base/refusal.js';
import { type ScratchSource, unusable } from '../source.js';
import { topOfRam } from '../top-of-ram.js';

/** `--scratch top`: the end of RAM, where the kernel leaves it alone. No other source is asked beside it. */
export const endOfRam: ScratchSource = {
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
