import { madeOnce } from '../../../base/made-once.js';
import { type FunctionRow, FunctionSummary, functionJson, functionTable, namesBound } from '../../../trace/index.js';
import type { ValuePlace } from '../../argument-places.js';
import { loopsToStart } from '../../code-facts.js';
import type { FunctionArgument, FunctionProbe } from '../../describer.js';
import { planConditions } from '../../expressions/comparison.js';
import { inlinedToo } from '../../inlined-functions.js';
import { functionPlan, leavesValuesOut, type PlannedReads, type ReadPlan, stackNote } from '../../read-plan.js';
import { type FunctionProbes, resolveFunctions } from '../../resolve-functions.js';
import { ValueReads } from '../../value-reads.js';
import type { Found, Outcome, PlanWishes, ProbeKind } from '../kind.js';
import { type NameRules, type ProbeSpec, parseNames, verifyIncludes } from '../names.js';
import { FunctionTracer } from './tracer.js';

const rules: NameRules = { name: 'fn', everything: 'every function', mayInsist: true };

interface FoundFunctions extends Found {
  readonly functions: FunctionProbes;
}

/** Entries and returns of functions. */
export const fn: ProbeKind<ProbeSpec, FoundFunctions> = {
  name: rules.name,
  help: "'fn:GLOB' these functions, '!' in front leaves them out, '!' behind takes labels of assembly and trap entries too",
  purpose: 'for functions',
  parse: (text) => parseNames(rules, text),
  check: (specs) => verifyIncludes(specs, rules.name),
  resolve({ elf, debug, arch }, specs) {
    const functions = resolveFunctions(elf, debug, arch, specs);
    const { probes, excluded, unmatched } = functions;
    const addresses = probes.map(({ address }) => address);
    const keys = probes.reduce((most, { ref }) => Math.max(most, ref.key + 1), 0);
    return { functions, excluded, inlinedToo: inlinedToo(debug, probes), unmatched, addresses, keys };
  },
  plans({ functions }, wishes) {
    /** Of functions without debug info many have the same arguments: what is read of these is planned once. */
    const alike = new Map<readonly FunctionArgument[], FunctionReads>();
    return functions.probes.map((probe) => {
      const isLikeOthers = probe.when === undefined && probe.result === undefined;
      const reads = isLikeOthers
        ? madeOnce(alike, probe.arguments, () => readsOf(probe, wishes))
        : readsOf(probe, wishes);
      return planFunction(probe, reads, wishes);
    });
  },
  tracer({ functions }, { elf, arch, output, values, maxDepth }) {
    return { calls: new FunctionTracer(functions, output, { loops: loopsToStart(elf, arch), values, maxDepth }) };
  },
  report(found) {
    if (!found) return { json: () => ({ functions: [] }), tables: () => [] };
    const summary = new FunctionSummary(({ kind }) => kind === undefined);
    const rows = (outcome: Outcome): readonly FunctionRow[] =>
      summary.rows(outcome.stopError, namesBound(outcome.engines, outcome), (outcome.stopsBeside ?? 0) > 0);
    return {
      sink: summary,
      json: (outcome) => ({ functions: functionJson(rows(outcome)) }),
      tables: (outcome, options) => [functionTable(rows(outcome), options)],
    };
  },
};

/** Bytes of a record for registers and for what they lead to: some less than the longest record has. */
const mostShown = 160;
const WORD = 8;

/** What is read of a function, whichever it is. */
interface FunctionReads extends Pick<ReadPlan, 'entryRegisters' | 'entryReads' | 'entryExtents' | 'exit' | 'when'> {
  /** Why a value needs a stop, and why a condition does. */
  readonly foreign: string | undefined;
  readonly why: string | undefined;
}

/** What a function's hits read: the registers of its arguments, and of its result. */
function readsOf(
  probe: FunctionProbe,
  { values, general, floats }: Pick<PlanWishes, 'values' | 'general' | 'floats'>,
): FunctionReads {
  const { result } = probe;
  const { registers: looked, reads, why, when } = planConditions(probe.when);
  const entry = [...new Set([...(values ? registersOf(probe.arguments.map(({ where }) => where)) : []), ...looked])];
  const shown = new ValueReads(values ? mostShown - 8 * entry.length - loadedBytes(reads) : 0);
  for (const argument of probe.arguments) shown.add(argument.where, argument.shape);
  const exit = values && result ? registersOf([result.where]) : [];
  const returned = new ValueReads(values ? mostShown - 8 * exit.length : 0);
  if (result) returned.addRegisters(result.where, result.shape);
  const places = values ? [...probe.arguments.map(({ where }) => where), ...(result ? [result.where] : [])] : [];
  const wide = new Set(places.flatMap(wideRegisters));
  const isRead = (name: string): boolean => floats.has(name) && !wide.has(name) && !looked.includes(name);
  const foreign = [...entry, ...exit].find((name) => !general.has(name) && !isRead(name));
  return {
    entryRegisters: entry,
    entryReads: [...reads, ...shown.reads],
    entryExtents: shown.extents,
    exit: { keep: [], registers: exit, reads: [], extents: returned.extents },
    when,
    foreign: foreign && `a value lies in ${foreign} ${leavesValuesOut}`,
    why,
  };
}

function planFunction(
  probe: FunctionProbe,
  { foreign, why, ...reads }: FunctionReads,
  { returns = false }: Pick<PlanWishes, 'returns'>,
): ReadPlan {
  const { insisted } = probe;
  // Not from a spread on: V8 would give each of a kernel's 46,000 plans a hidden class of its own, of 350 bytes.
  return {
    entryIsEnough: !returns,
    ...functionPlan(probe, foreign, why),
    ...reads,
    ...(insisted === undefined ? {} : { partly: entriesOnly(insisted), insisted }),
    returnStays: stackNote(probe),
    seesReturn: insisted === undefined,
  };
}

function entriesOnly(why: string): string {
  return `its entries alone are seen (${why})`;
}

function registersOf(places: readonly ValuePlace[]): string[] {
  const names = places.flatMap((where) =>
    where.kind === 'registers'
      ? where.parts.flatMap((part) => part.register ?? [])
      : where.kind === 'pointer'
        ? [where.register]
        : [],
  );
  return [...new Set(names)];
}

/** Those of which more than a word is asked for: vectors. */
function wideRegisters(where: ValuePlace): string[] {
  if (where.kind !== 'registers') return [];
  return where.parts.flatMap((part) => (part.register !== undefined && part.size > WORD ? [part.register] : []));
}

function loadedBytes(reads: readonly PlannedReads[]): number {
  return reads.reduce((sum, { loads }) => sum + loads.reduce((bytes, { size }) => bytes + size, 0), 0);
}
