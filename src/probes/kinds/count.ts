import { countTable, tallyJson } from '../../trace/index.js';
import type { ProbeKind } from './kind.js';
import { type NameRules, type ProbeSpec, parseNames, verifyIncludes } from './names.js';
import { planTally } from './tallies/plan.js';
import { resolveCounts, type TallyProbes } from './tallies/resolve.js';
import { TallyTracer } from './tallies/tracer.js';

const rules: NameRules = { name: 'count', everything: 'every function' };

/** How often functions are entered. */
export const count: ProbeKind<ProbeSpec, TallyProbes> = {
  name: rules.name,
  help: "'count:GLOB' only counts their calls",
  purpose: 'for their calls alone',
  onlyCounts: true,
  parse: (text) => parseNames(rules, text),
  check: (specs) => verifyIncludes(specs, rules.name),
  resolve: resolveCounts,
  plans: ({ probes }, { general }) => probes.map((probe) => planTally(probe, general)),
  tracer({ probes }) {
    const counts = new TallyTracer(probes);
    return { calls: counts, counts };
  },
  report: () => ({
    json: ({ tallies }) => ({ counts: tallyJson(tallies).counts }),
    tables: ({ tallies }, options) => (tallies.some(({ by }) => !by) ? [countTable(tallies, options)] : []),
  }),
};
