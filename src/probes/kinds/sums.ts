import { addedJson, addedTable } from '../../trace/index.js';
import type { ProbeKind } from './kind.js';
import { type NameRules, type ProbeSpec, parseNames, verifyGrouping, verifyIncludes } from './names.js';
import { planTally } from './tallies/plan.js';
import { resolveByNumber, type TallyProbes } from './tallies/resolve.js';
import { TallyTracer } from './tallies/tracer.js';

/** The sum of a number of each call: an argument, the result, or the time that it takes. */
export const sum: ProbeKind<ProbeSpec, TallyProbes> = adding('sum', 'adds up', 'sums');

/** The same by the number of calls. */
export const avg: ProbeKind<ProbeSpec, TallyProbes> = adding('avg', 'is the average of', 'averages');

function adding(as: 'sum' | 'avg', does: string, member: string): ProbeKind<ProbeSpec, TallyProbes> {
  const argument = `${does} the argument len of calls`;
  const rules: NameRules = { name: as, everything: 'every function', isGrouped: true, argument };
  return {
    name: as,
    help: `'${as}(ARG):GLOB' ${does} an argument, the result (${as}(ret)) or ${as}(duration)`,
    onlyCounts: true,
    parse: (text) => parseNames(rules, { ...text, rest: text.rest.replace(/^fn:(?!:)\s*/, '') }),
    check(specs, asked) {
      verifyIncludes(specs, `${as}(ARG)`);
      verifyGrouping(specs, asked);
    },
    resolve: (program, specs) => resolveByNumber(program, specs, as),
    plans: ({ probes }, { general }) => probes.map((probe) => planTally(probe, general)),
    tracer({ probes }) {
      const counts = new TallyTracer(probes);
      return { calls: counts, counts };
    },
    report: () => ({
      json: ({ tallies }) => ({ [member]: addedJson(tallies, as) }),
      tables: ({ tallies }, options) => [addedTable(tallies, as, options)].filter((table) => table !== ''),
    }),
  };
}
