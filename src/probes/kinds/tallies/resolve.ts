import type { Architecture, IntegerIn } from '../../../arch/index.js';
import { RsptraceError } from '../../../base/errors.js';
import type { ElfFile } from '../../../elf/index.js';
import { loopsToStart } from '../../code-facts.js';
import { integerArgument } from '../../predicate.js';
import {
  type ExcludedFunction,
  type FunctionProbe,
  type FunctionProbes,
  resolveFunctions,
} from '../../resolve-functions.js';
import type { Found, ProbedProgram } from '../kind.js';
import type { ProbeSpec } from '../names.js';

/** A function whose calls are only counted. */
export interface TallyProbe {
  readonly function: FunctionProbe;
  /** The argument by whose size they are counted; undefined: all together. */
  readonly by: (IntegerIn & { readonly argument: string }) | undefined;
}

export interface TallyProbes extends Found {
  /** Of one argument after the other, each in order of address. */
  readonly probes: readonly TallyProbe[];
  readonly excluded: readonly ExcludedFunction[];
  /** Probes that match no function, where others do. */
  readonly unmatched: readonly string[];
}

/**
 * Finds functions whose calls are counted.
 * @throws RsptraceError as {@link resolveFunctions}
 */
export function resolveCounts(program: ProbedProgram, specs: readonly ProbeSpec[]): TallyProbes {
  const { probes, excluded, unmatched } = countable(program, specs);
  return tallyProbes({ probes: probes.map((probe) => ({ function: probe, by: undefined })), excluded, unmatched });
}

/**
 * The same for functions whose calls are counted by the size of an argument.
 * @throws RsptraceError as {@link resolveFunctions}; `PROBE_CONDITION` where no function has the argument
 */
export function resolveHistograms(program: ProbedProgram, specs: readonly ProbeSpec[]): TallyProbes {
  const probes: TallyProbe[] = [];
  const excluded: ExcludedFunction[] = [];
  const unmatched: string[] = [];
  for (const name of new Set(specs.flatMap(({ argument }) => argument ?? []))) {
    const functions = countable(
      program,
      specs.filter(({ argument, excludes }) => excludes || argument === name),
    );
    const { found, refused } = byArgument(name, functions.probes);
    if (found.length === 0) throw noArgument(name, refused);
    probes.push(...found);
    excluded.push(...functions.excluded, ...refused);
    unmatched.push(...functions.unmatched);
  }
  return tallyProbes({ probes, excluded, unmatched });
}

function tallyProbes(found: Pick<TallyProbes, 'probes' | 'excluded' | 'unmatched'>): TallyProbes {
  return { ...found, addresses: found.probes.map((probe) => probe.function.address) };
}

function countable({ elf, debug, arch }: ProbedProgram, specs: readonly ProbeSpec[]): FunctionProbes {
  return withoutLoops(elf, arch, resolveFunctions(elf, debug, arch, specs));
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

/**
 * A loop to the first instruction hits a breakpoint or a patch there as a call does. Only returns would tell them
 * apart.
 */
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
