import { histogramText, tallyJson } from '../../trace/index.js';
import type { ProbeKind } from './kind.js';
import { type NameRules, type ProbeSpec, parseNames, verifyIncludes } from './names.js';
import { planTally } from './tallies/plan.js';
import { resolveHistograms, type TallyProbes } from './tallies/resolve.js';
import { TallyTracer } from './tallies/tracer.js';

const rules: NameRules = { name: 'hist', everything: 'every function', hasArgument: true };

/** How often functions are entered, by the size of an argument. */
export const hist: ProbeKind<ProbeSpec, TallyProbes> = {
  name: rules.name,
  help: "'hist(ARG):GLOB' counts by the size of an argument",
  onlyCounts: true,
  parse: (text) => parseNames(rules, text),
  check: (specs) => verifyIncludes(specs, 'hist(ARG)'),
  resolve: resolveHistograms,
  plans: ({ probes }, { general }) => probes.map((probe) => planTally(probe, general)),
  tracer({ probes }) {
    const counts = new TallyTracer(probes);
    return { calls: counts, counts };
  },
  report: () => ({
    json: ({ tallies }) => ({ histograms: tallyJson(tallies).histograms }),
    tables: ({ tallies }) => tallies.flatMap((row) => (row.by ? [histogramText(row)] : [])),
  }),
};
