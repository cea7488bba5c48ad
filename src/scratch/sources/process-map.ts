import { addOffset } from '../../base/addr.js';
import { RsptraceError } from '../../base/errors.js';
import type { ElfFile } from '../../elf/index.js';
import { mapIntoProcess } from '../linux-process.js';
import type { Region } from '../scratch.js';
import type { ScratchSource } from '../source.js';

const PT_LOAD = 1;
const PF_X = 1;

/** Memory that a process of Linux maps for us. */
export const processMap: ScratchSource = {
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

/** From the program's first executable byte to its last. */
function textOf(elf: ElfFile): Region | undefined {
  const code = elf.segments.filter(({ type, flags }) => type === PT_LOAD && (flags & PF_X) !== 0);
  const ends = code.flatMap(({ address, memorySize }) => [address, addOffset(address, memorySize)]);
  const [start, end] = ends.toSorted((a, b) => (a < b ? -1 : 1)).filter((_, i) => i === 0 || i === ends.length - 1);
  if (start === undefined || end === undefined) return undefined;
  return { address: start, size: Number(end - start) };
}
