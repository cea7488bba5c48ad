import type { ElfFile } from '../elf/index.js';
import type { ScratchSources } from '../engines/index.js';
import { parseScratch, symbolMemory } from '../engines/index.js';

export interface ScratchArguments {
  readonly scratch: string | undefined;
  readonly 'scratch-symbol': string | undefined;
}

/** RAM is to be kept from a guest that stands at its reset. */
export function isHidden({ scratch }: Pick<ScratchArguments, 'scratch'>): boolean {
  return scratch === 'hidden';
}

/** The memory that the user names for trampolines. Throws `SCRATCH_SYNTAX`, `SCRATCH_NO_SYMBOL`. */
export function givenScratchOf(args: ScratchArguments, elf: ElfFile): ScratchSources {
  if (isHidden(args)) return {};
  if (args.scratch === 'top') return { top: true };
  const symbol = args['scratch-symbol'];
  if (args.scratch !== undefined) return { given: parseScratch(args.scratch) };
  return symbol === undefined ? {} : { given: symbolMemory(elf, symbol) };
}
