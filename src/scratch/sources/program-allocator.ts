import { allocatorOf } from '../allocators.js';
import { GuestAllocator } from '../guest-allocator.js';
import type { ScratchSource } from '../source.js';

/** The program's own allocator, which is called where the program calls it. */
export const programAllocator: ScratchSource = {
  name: "the program's allocator",
  expects: async ({ arch, elf, process }) =>
    process === undefined && arch.injectedCall !== undefined && allocatorOf(elf) !== undefined,
  async find({ session, arch, elf, text, pages, ownFirmware, codeSize, process, known, intercept, logger }) {
    if (process !== undefined) return { none: undefined };
    known.allocator ??= new GuestAllocator(session, arch, elf, logger);
    return (await known.allocator.scratch({ text, pages, ownFirmware, codeSize }, intercept)) ?? { none: undefined };
  },
};
