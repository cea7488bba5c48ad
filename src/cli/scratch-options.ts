import type { Refusal } from '../base/refusal.js';
import type { ElfFile } from '../elf/index.js';
import { parseScratch, reservedIn, type ScratchSources, symbolMemory } from '../scratch/index.js';

interface ScratchArguments {
  readonly scratch: string | undefined;
  readonly 'scratch-symbol': string | undefined;
}

/**
 * Whether RAM may be kept from a guest that stands at its reset: `asked` for, or `possible`. Undefined if the user or
 * the program has named other memory, or none is to be had. Nor if the wire is recorded, because what is read past it
 * could not be played back.
 */
export function hidesRam(
  args: ScratchArguments & { readonly 'record-wire': string | undefined },
  elf: ElfFile,
): 'asked' | 'possible' | undefined {
  if (args.scratch !== undefined) return args.scratch === 'hidden' ? 'asked' : undefined;
  const isNamed = args['scratch-symbol'] !== undefined || reservedIn(elf) !== undefined;
  return isNamed || args['record-wire'] !== undefined ? undefined : 'possible';
}

/** The user wants none of a guest's RAM to be kept from it. */
export function refusedScratch({ scratch }: Pick<ScratchArguments, 'scratch'>): Refusal | undefined {
  return scratch === 'none' ? { refused: '--scratch none leaves the guest all its RAM' } : undefined;
}

/** The memory that the user names for trampolines. Throws `SCRATCH_SYNTAX`, `SCRATCH_NO_SYMBOL`. */
export function givenScratchOf(args: ScratchArguments, elf: ElfFile): ScratchSources {
  if (args.scratch === 'hidden') return {};
  const hidden = refusedScratch(args);
  if (hidden) return { hidden };
  if (args.scratch === 'top') return { top: true };
  const symbol = args['scratch-symbol'];
  if (args.scratch !== undefined) return { given: parseScratch(args.scratch) };
  return symbol === undefined ? {} : { given: symbolMemory(elf, symbol) };
}
