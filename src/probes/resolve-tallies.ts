import type { Architecture, IntegerIn } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { loopsToStart } from './code-facts.js';
import { integerArgument } from './predicate.js';
import type { ProbeSpec, ProbesByKind } from './probe-spec.js';
import {
  type ExcludedFunction,
  type FunctionProbe,
  type FunctionProbes,
  resolveFunctions,
} from './resolve-functions.js';

/** A function whose calls are only counted. */
export interface TallyProbe {
  readonly function: FunctionProbe;
  /** The argument by whose size they are counted; undefined: all together. */
  readonly by: (IntegerIn & { readonly argument: string }) | undefined;
}

export interface TallyProbes {
  /** Those of `count`, then those of `hist` by argument, each in order of address. */
  readonly probes: readonly TallyProbe[];
  readonly excluded: readonly ExcludedFunction[];
  /** Probes that match no function, where others do. */
  readonly unmatched: readonly string[];
}

/**
 * Resolves `count:` and `hist(ARG):` probes.
 * @returns undefined where there are none
 * @throws RsptraceError as {@link resolveFunctions}; `PROBE_CONDITION` where no function has the argument of a histogram
 */
export function resolveTallies(
  elf: ElfFile,
  debug: DebugInfo | undefined,
  arch: Architecture,
  { count, hist }: Pick<ProbesByKind, 'count' | 'hist'>,
): TallyProbes | undefined {
  if (!count && !hist) return undefined;
  const resolve = (specs: readonly ProbeSpec[]): FunctionProbes =>
    withoutLoops(elf, arch, resolveFunctions(elf, debug, arch, specs));
  const probes: TallyProbe[] = [];
  const excluded: ExcludedFunction[] = [];
  const unmatched: string[] = [];
  if (count) {
    const counted = resolve(count);
    probes.push(...counted.probes.map((probe): TallyProbe => ({ function: probe, by: undefined })));
    excluded.push(...counted.excluded);
    unmatched.push(...counted.unmatched);
  }
  const names = new Set((hist ?? []).flatMap(({ argument }) => (argument === undefined ? [] : [argument])));
  for (const name of names) {
    const functions = resolve((hist ?? []).filter(({ argument, excludes }) => excludes || argument === name));
    const { found, refused } = byArgument(name, functions.probes);
    if (found.length === 0) throw noArgument(name, refused);
    probes.push(...found);
    excluded.push(...functions.excluded, ...refused);
    unmatched.push(...functions.unmatched);
  }
  return { probes, excluded, unmatched };
}

function byArgument(
  name: string,
  probes: readonly FunctionProbe[],
): { readonly found: readonly TallyProbe[]; readonly refused: readonly ExcludedFunction[] } {
  const found: TallyProbe[] = [];
  const refused: ExcludedFunction[] = [];
  for (const probe of probes) {
    const integer = integerArgument(name, probe.arguments);
    if ('refused' in integer) refused.push({ name: probe.ref.name, address: probe.address, reason: integer.refused });
    else found.push({ function: probe, by: { ...integer, argument: name } });
  }
  return { found, refused };
}

/** A loop to the first instruction comes by a breakpoint and a patch there as a call does: without the returns nothing tells them apart. */
function withoutLoops(elf: ElfFile, arch: Architecture, functions: FunctionProbes): FunctionProbes {
  const jumps = loopsToStart(elf, arch);
  const loops = (probe: FunctionProbe): boolean => jumps(probe) ?? false;
  const probes = functions.probes.filter((probe) => !loops(probe));
  if (probes.length === functions.probes.length) return functions;
  const left = functions.probes
    .filter(loops)
    .map(({ address, ref }) => ({ name: ref.name, address, reason: 'it jumps to its first instruction' }));
  const [first] = left;
  if (probes.length === 0 && first) {
    throw new RsptraceError('PROBE_UNSAFE', `the calls of what matches cannot be counted (${first.name})`, {
      hint: `${first.name}: ${first.reason}, which counts as a call there; fn: probes tell it from one`,
    });
  }
  return { ...functions, probes, excluded: [...functions.excluded, ...left] };
}

function noArgument(name: string, refused: readonly ExcludedFunction[]): RsptraceError {
  const [first] = refused;
  return new RsptraceError('PROBE_CONDITION', `no function that matches has an integer argument ${name}`, {
    ...(first && { hint: `${first.name}: ${first.reason}` }),
  });
}
