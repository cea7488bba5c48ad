import { histogramText, tallyJson } from '../../trace/index.js';
import type { ProbeKind } from './kind.js';
import { argumentOfHist, type NameRules, type ProbeSpec, parseNames, verifyGrouping, verifyIncludes } from './names.js';
import { planTally } from './tallies/plan.js';
import { resolveByNumber, type TallyProbes } from './tallies/resolve.js';
import { TallyTracer } from './tallies/tracer.js';

const rules: NameRules = { name: 'hist', everything: 'every function', isGrouped: true, argument: argumentOfHist };

/** How often functions are called, by the size of an argument, of the result, or by the time that they take. */
export const hist: ProbeKind<ProbeSpec, TallyProbes> = {
  name: rules.name,
  help: "'hist(ARG):GLOB' counts by the size of an argument, of the result (hist(ret)) or by hist(duration)",
  onlyCounts: true,
  // `hist(len):fn:GLOB` is the same: that it is about functions may be said.
  parse: (text) => parseNames(rules, { ...text, rest: text.rest.replace(/^fn:(?!:)\s*/, '') }),
  check(specs, asked) {
    verifyIncludes(specs, 'hist(ARG)');
    verifyGrouping(specs, asked);
  },
  resolve: (program, specs) => resolveByNumber(program, specs),
  plans: ({ probes }, { general }) => probes.map((probe) => planTally(probe, general)),
  tracer({ probes }) {
    const counts = new TallyTracer(probes);
    return { calls: counts, counts };
  },
  report: () => ({
    json: ({ tallies }) => ({ histograms: tallyJson(tallies).histograms }),
    tables: ({ tallies }) => tallies.flatMap((row) => (row.by && !row.by.added ? [histogramText(row)] : [])),
  }),
};
