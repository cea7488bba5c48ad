import type { ElfFile } from '../elf/index.js';
import type { ScratchSources } from '../engines/index.js';
import { parseScratch, symbolMemory } from '../engines/index.js';

/** The memory that the user names for trampolines. Throws `SCRATCH_SYNTAX`, `SCRATCH_NO_SYMBOL`. */
export function givenScratchOf(
  args: { readonly scratch: string | undefined; readonly 'scratch-symbol': string | undefined },
  elf: ElfFile,
): ScratchSources {
  const symbol = args['scratch-symbol'];
  if (args.scratch !== undefined) return { given: parseScratch(args.scratch) };
  return symbol === undefined ? {} : { given: symbolMemory(elf, symbol) };
}
