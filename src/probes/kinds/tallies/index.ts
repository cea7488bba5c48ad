import {
  addedJson,
  addedTable,
  countTable,
  histogramTexts,
  type TableOptions,
  type TallyRow,
  tallyJson,
} from '../../../trace/index.js';
import { planConditions } from '../../expressions/comparison.js';
import { registersOf } from '../../expressions/plan.js';
import { foreignIn, functionPlan, type PlannedCount, type ReadPlan, stackNote } from '../../read-plan.js';
import type { ProbeKind } from '../kind.js';
import {
  argumentOfHist,
  type NameRules,
  type ProbeSpec,
  parseNames,
  verifyGrouping,
  verifyIncludes,
} from '../names.js';
import { resolveTallies, type TallyProbe, type TallyProbes } from './resolve.js';
import { TallyTracer } from './tracer.js';

type TallyKind = ProbeKind<ProbeSpec, TallyProbes>;

/** How kinds that count differ. */
interface Tallied extends Pick<TallyKind, 'name' | 'help' | 'purpose'> {
  /** See `NameRules`. */
  readonly argument?: string;
  readonly adds?: TallyProbe['adds'];
  json(tallies: readonly TallyRow[]): object;
  tables(tallies: readonly TallyRow[], options: TableOptions): readonly string[];
}

/** How often functions are entered. */
export const count: TallyKind = tallyKind({
  name: 'count',
  help: "'count:GLOB' only counts their calls, 'count:GLOB by task' (or hart) a row each",
  purpose: 'for their calls alone',
  json: (tallies) => ({ counts: tallyJson(tallies).counts }),
  tables: (tallies, options) => (tallies.some(({ by }) => !by) ? [countTable(tallies, options)] : []),
});

/** How often functions are called, by the size of an argument, of the result, or by the time that they take. */
export const hist: TallyKind = tallyKind({
  name: 'hist',
  help: "'hist(ARG):GLOB' counts by the size of an argument, of the result (hist(ret)) or by hist(duration)",
  argument: argumentOfHist,
  json: (tallies) => ({ histograms: tallyJson(tallies).histograms }),
  tables: histogramTexts,
});

/** The sum of a number of each call: an argument, the result, or the time that it takes. */
export const sum: TallyKind = adding('sum', 'adds up', 'sums');

/** The same by the number of calls. */
export const avg: TallyKind = adding('avg', 'is the average of', 'averages');

function adding(name: 'sum' | 'avg', does: string, member: string): TallyKind {
  return tallyKind({
    name,
    help: `'${name}(ARG):GLOB' ${does} an argument, the result (${name}(ret)) or ${name}(duration)`,
    argument: `${does} the argument len of calls`,
    adds: name,
    json: (tallies) => ({ [member]: addedJson(tallies, name) }),
    tables: (tallies, options) => [addedTable(tallies, name, options)].filter((table) => table !== ''),
  });
}

function tallyKind({ argument, adds, json, tables, ...about }: Tallied): TallyKind {
  const { name } = about;
  const rules: NameRules = { name, everything: 'every function', isGrouped: true, ...(argument && { argument }) };
  return {
    ...about,
    onlyCounts: true,
    // `hist(len):fn:GLOB` is the same: that it is about functions may be said.
    parse: (text) => parseNames(rules, argument ? { ...text, rest: text.rest.replace(/^fn:(?!:)\s*/, '') } : text),
    check(specs, asked) {
      verifyIncludes(specs, argument ? `${name}(ARG)` : name);
      verifyGrouping(specs, asked);
    },
    resolve: (program, specs) => resolveTallies(program, specs, adds),
    plans: ({ probes }, { general }) => probes.map((probe) => planTally(probe, general)),
    tracer({ probes }) {
      const counts = new TallyTracer(probes);
      return { calls: counts, counts };
    },
    report: () => ({
      json: ({ tallies }) => json(tallies),
      tables: ({ tallies }, options) => tables(tallies, options),
    }),
  };
}

/** What counting a function's calls reads: the registers of its conditions, and of what it counts by. */
function planTally(tally: TallyProbe, general: ReadonlySet<string>): ReadPlan {
  const { function: probe, by } = tally;
  const { registers, reads, why, when, isDecided } = planConditions(
    probe.when,
    by?.kind === 'entry' ? [by.number.spot] : [],
  );
  const returned = by?.kind === 'result' ? registersOf([by.number.spot]) : [];
  const seesReturn = by !== undefined && by.kind !== 'entry';
  const count = isDecided ? countOf(tally, when) : undefined;
  return {
    ...functionPlan(probe, foreignIn([...registers, ...returned], general), why),
    entryRegisters: registers,
    entryReads: reads,
    exit: { keep: [], registers: returned, reads: [] },
    returnStays: seesReturn ? stackNote(probe) : undefined,
    when,
    seesReturn,
    counts: count ? [count] : [],
  };
}

/** What counters in the target can count of it: no result, no time, no tasks or harts apart. */
function countOf(probe: TallyProbe, when: ReadPlan['when']): PlannedCount | undefined {
  const { by, adds, groupedBy } = probe;
  if (groupedBy) return undefined;
  if (!by) return { kind: 'calls', when, probe };
  if (by.kind !== 'entry' || !by.number.target) return undefined;
  return { kind: adds ? 'sum' : 'buckets', of: by.number.target, when, probe };
}
