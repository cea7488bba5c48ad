import type { Addr } from '../../base/addr.js';
import type { Logger } from '../../base/logger.js';
import { ElfFile } from '../../elf/index.js';
import type { EngineName } from '../../engines/index.js';
import { type Found, type InlinedPolls, kinds, type ProbeKind, parseProbe, type Wakes } from '../../probes/index.js';
import { type EnginePlanWishes, functionNamed, type PlaceOptions, type Program, prepare } from '../../record/index.js';
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
  const { programs = [] } = args;
  const others =
    programs.length === 0 ? [] : await openElfs({ ...args, programs }, await ElfFile.open(args.elf), logger);
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
