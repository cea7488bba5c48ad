import type { Architecture } from '../../../arch/index.js';
import { RsptraceError } from '../../../base/errors.js';
import type { ElfFile } from '../../../elf/index.js';
import { loopsToStart } from '../../code-facts.js';
import type { FunctionProbe } from '../../describer.js';
import { numberFor, type PlannedNumber } from '../../expressions/comparison.js';
import { ProgramExpressions, rootOf } from '../../expressions/program.js';
import type { ExcludedFunction } from '../../inlined-functions.js';
import { inlinedToo } from '../../inlined-functions.js';
import { type FunctionProbes, reasonOf, resolveFunctions } from '../../resolve-functions.js';
import type { Found, ProbedProgram } from '../kind.js';
import type { Grouping, ProbeSpec } from '../names.js';

/** A function whose calls are only counted. */
export interface TallyProbe {
  readonly function: FunctionProbe;
  /** By whose size they are counted; undefined: all together. */
  readonly by: CountedBy | undefined;
  /** The numbers are added up instead, for a table of sums or one of averages. */
  readonly adds?: 'sum' | 'avg' | undefined;
  /** Those of each task or hart apart. */
  readonly groupedBy?: Grouping | undefined;
}

/** A number at the entry, or one that the return says: the result, or the nanoseconds since the entry. */
type CountedBy =
  | { readonly argument: string; readonly kind: 'entry' | 'result'; readonly number: PlannedNumber }
  | { readonly argument: string; readonly kind: 'duration' };

/** What a return says has these names, whatever a function's arguments are called. */
const resultName = 'ret';
const durationName = 'duration';

export interface TallyProbes extends Found {
  /** Of one argument after the other, each in order of address. */
  readonly probes: readonly TallyProbe[];
  readonly excluded: readonly ExcludedFunction[];
  readonly inlinedToo: readonly ExcludedFunction[];
  /** Probes that match no function, where others do. */
  readonly unmatched: readonly string[];
}

/**
 * Finds functions whose calls are counted. Where probes have an argument it is a number: they are counted by its size,
 * or it is added up (`adds`).
 * @throws RsptraceError as {@link resolveFunctions}; `PROBE_CONDITION` where no function has the argument
 */
export function resolveTallies(
  { elf, debug, arch }: ProbedProgram,
  specs: readonly ProbeSpec[],
  adds?: TallyProbe['adds'],
): TallyProbes {
  const probes: TallyProbe[] = [];
  const excluded: ExcludedFunction[] = [];
  const unmatched: string[] = [];
  const expressions = debug && new ProgramExpressions(debug);
  const asked = new Map(specs.map(({ argument }) => [argument?.text, argument]));
  if (asked.size > 1) asked.delete(undefined);
  for (const [name, argument] of asked) {
    const named = specs.filter((spec) => spec.excludes || spec.argument?.text === name);
    for (const [groupedBy, group] of grouped(named)) {
      const functions = withoutLoops(elf, arch, resolveFunctions(elf, debug, arch, group));
      const { found, refused } = byArgument(argument, functions.probes, expressions);
      if (found.length === 0) throw noArgument(name ?? '', refused);
      probes.push(...found.map((probe) => ({ ...probe, adds, groupedBy })));
      excluded.push(...functions.excluded, ...refused);
      unmatched.push(...functions.unmatched);
    }
  }
  const copies = inlinedToo(
    debug,
    probes.map((probe) => probe.function),
  );
  return { probes, excluded, inlinedToo: copies, unmatched, addresses: probes.map((probe) => probe.function.address) };
}

/** Probes of each grouping, with all that leave functions out. */
function grouped(specs: readonly ProbeSpec[]): [Grouping | undefined, readonly ProbeSpec[]][] {
  const groupings = new Set(specs.filter(({ excludes }) => !excludes).map(({ groupedBy }) => groupedBy));
  return [...groupings].map((by) => [by, specs.filter((spec) => spec.excludes || spec.groupedBy === by)]);
}

function byArgument(
  argument: ProbeSpec['argument'],
  probes: readonly FunctionProbe[],
  program: ProgramExpressions | undefined,
): { readonly found: readonly TallyProbe[]; readonly refused: readonly ExcludedFunction[] } {
  const found: TallyProbe[] = [];
  const refused: ExcludedFunction[] = [];
  for (const probe of probes) {
    try {
      found.push({ function: probe, by: argument && countedBy(argument, probe, program) });
    } catch (error) {
      refused.push({ name: probe.ref.name, address: probe.address, reason: reasonOf(error) });
    }
  }
  return { found, refused };
}

function countedBy(
  argument: NonNullable<ProbeSpec['argument']>,
  { arguments: places, result }: FunctionProbe,
  program: ProgramExpressions | undefined,
): CountedBy {
  const { text } = argument;
  if (text === durationName) return { argument: 'duration in ns', kind: 'duration' };
  if (rootOf(argument.expression) !== resultName) {
    return { argument: text, kind: 'entry', number: numberFor(argument, places, program) };
  }
  if (!result) throw new RsptraceError('EXPRESSION_TYPE', 'it returns nothing');
  const returned = { name: resultName, shape: result.shape, where: result.where };
  const number = numberFor(argument, [returned], program);
  if (number.spot.kind === 'registers') return { argument: text, kind: 'result', number };
  throw new RsptraceError('EXPRESSION_TYPE', `its ${text} is not in a register when it returns`);
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
  return new RsptraceError('PROBE_CONDITION', `no function that matches has an integer ${name}`, {
    ...(first && { hint: `${first.name}: ${first.reason}` }),
  });
}
