import type { Addr } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { ElfFile } from '../../elf/index.js';
import { type EngineName, scratchNone } from '../../engines/index.js';
import { type Found, type InlinedPolls, kinds, type ProbeKind, parseProbe, type Wakes } from '../../probes/index.js';
import { type EnginePlanWishes, functionNamed, type PlaceOptions, type Program, prepare } from '../../record/index.js';
import { parseScratch, reservedIn, type ScratchSources, symbolMemory } from '../../scratch/index.js';
import { openElfs } from '../open-programs.js';
import { debugFilesOf } from '../options/common.js';
import type { LoadedPlugins } from '../plugins.js';
import type { AskedArguments } from '../records-file.js';

/** Reads the ELF, and finds the probes in it. */
export async function preparedProgram(
  args: AskedArguments,
  plugins: LoadedPlugins,
  logger: Logger,
  place?: PlaceOptions['place'],
): Promise<Program> {
  const known = [...kinds, ...plugins.kinds];
  const specs = args.probe.map((text) => parseProbe(text, known));
  const others = args.programs.length === 0 ? [] : await openElfs(args, await ElfFile.open(args.elf), logger);
  const how = { ...debugFilesOf(args), inlined: inlinedOf(args), wakes: wakesOf(args), place, others };
  return await prepare(args.elf, specs, logger, how, known);
}

/** The resolved probes of a kind; undefined if none asks for it. */
export function foundOf(program: Program, kind: ProbeKind): Found | undefined {
  return program.kinds.find((each) => each.kind === kind)?.found;
}

/** What of the options decides about engines. */
export function planWishes(args: AskedArguments, program: Program): EnginePlanWishes {
  const [values, returns] = [args.args, needsReturns(args)];
  return { wanted: engineOf(args), stackDepth: args.bt, values, returns, until: untilOf(args, program) };
}

/** Limits of times, and a threshold, are worth a stop where nothing else observes a return. */
export function needsReturns({
  budget,
  threshold,
}: AskedArguments & { readonly budget?: string | undefined }): boolean {
  return budget !== undefined || (threshold ?? 0) > 0;
}

/** Who asks for stops at inlined polls takes them all. */
export function engineOf({ engine, exact }: AskedArguments): EngineName {
  return engine === 'auto' && exact ? 'mixed' : engine;
}

function inlinedOf({ engine, exact, bt }: AskedArguments): InlinedPolls {
  if (engine === 'target') return 'patched';
  if (exact) return 'all';
  // With stacks every hit stops.
  return engine === 'stop' || bt !== undefined ? 'needed' : 'auto';
}

function wakesOf({ engine, wakes }: AskedArguments): Wakes {
  return engine === 'stop' && wakes === 'auto' ? 'never' : wakes;
}

export function untilOf({ until }: AskedArguments, program: Program): Addr | undefined {
  return until === undefined ? undefined : functionNamed(program.elf, until);
}

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
  return scratch === 'none' ? { refused: scratchNone } : undefined;
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
