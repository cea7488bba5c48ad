import { isRefusal } from '../../base/refusal.js';
import type { ScratchSource } from '../source.js';

/** RAM of a machine that rsptrace started, which the guest is not told of. */
export const hiddenRam: ScratchSource = {
  name: 'hidden RAM',
  expects: async ({ hidden, process }) =>
    process === undefined && hidden !== undefined && (isRefusal(hidden) ? hidden : true),
  async find({ arch, text, pages, ownFirmware, codeSize, hidden, process, ram }) {
    if (process !== undefined || hidden === undefined) return { none: undefined };
    return isRefusal(hidden) ? { none: hidden.refused } : hidden.map(arch, { text, pages, ownFirmware, codeSize }, ram);
  },
};
