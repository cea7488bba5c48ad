import { countTable, tallyJson } from '../../trace/index.js';
import type { ProbeKind } from './kind.js';
import { type NameRules, type ProbeSpec, parseNames, verifyGrouping, verifyIncludes } from './names.js';
import { planTally } from './tallies/plan.js';
import { resolveCounts, type TallyProbes } from './tallies/resolve.js';
import { TallyTracer } from './tallies/tracer.js';

const rules: NameRules = { name: 'count', everything: 'every function', isGrouped: true };

/** How often functions are entered. */
export const count: ProbeKind<ProbeSpec, TallyProbes> = {
  name: rules.name,
  help: "'count:GLOB' only counts their calls, 'count:GLOB by task' (or hart) a row each",
  purpose: 'for their calls alone',
  onlyCounts: true,
  parse: (text) => parseNames(rules, text),
  check(specs, asked) {
    verifyIncludes(specs, rules.name);
    verifyGrouping(specs, asked);
  },
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
