import type { ElfFile } from '../elf/index.js';
import type { ScratchSources } from '../engines/index.js';
import { parseScratch, reservedIn, symbolMemory } from '../engines/index.js';

export interface ScratchArguments {
  readonly scratch: string | undefined;
  readonly 'scratch-symbol': string | undefined;
}

/**
 * Whether RAM may be kept from a guest that stands at its reset: `asked` for, or because nothing else is `possible`.
 * Undefined if the user or the program has named other memory, or none is to be had.
 */
export function hidesRam(args: ScratchArguments, elf: ElfFile): 'asked' | 'possible' | undefined {
  if (args.scratch !== undefined) return args.scratch === 'hidden' ? 'asked' : undefined;
  return args['scratch-symbol'] === undefined && reservedIn(elf) === undefined ? 'possible' : undefined;
}

/** The memory that the user names for trampolines. Throws `SCRATCH_SYNTAX`, `SCRATCH_NO_SYMBOL`. */
export function givenScratchOf(args: ScratchArguments, elf: ElfFile): ScratchSources {
  if (args.scratch === 'hidden' || args.scratch === 'none') return {};
  if (args.scratch === 'top') return { top: true };
  const symbol = args['scratch-symbol'];
  if (args.scratch !== undefined) return { given: parseScratch(args.scratch) };
  return symbol === undefined ? {} : { given: symbolMemory(elf, symbol) };
}
