import { WatchSummary } from '../../../trace/index.js';
import type { Found, FoundWatches, ProbeKind } from '../kind.js';
import { plannedJson, plannedTable, watchTable } from './report.js';
import { knownPlaces, resolveWatches } from './resolve.js';
import { parseWatch, type WatchSpec } from './spec.js';

interface FoundPlaces extends Found {
  readonly watches: FoundWatches;
}

/** Accesses of places in memory. */
export const watch: ProbeKind<WatchSpec, FoundPlaces> = {
  name: 'watch',
  help: "'watch:PLACE[:r|w|rw]' accesses of a variable",
  purpose: 'for a static',
  isPlain: true,
  parse: ({ text, rest }) => parseWatch(text, rest),
  async resolve({ debug }, specs) {
    const places = await knownPlaces(specs, debug);
    const planned = specs.map((spec, index) => ({ spec, place: places[index] }));
    return { addresses: [], watches: { planned, locate: (memory) => resolveWatches(specs, debug, memory) } };
  },
  report(found) {
    if (!found) return { json: () => ({ watches: [] }), tables: () => [] };
    const summary = new WatchSummary();
    return {
      sink: summary,
      json: ({ watches }) => ({ watches: summary.rows(watches) }),
      tables: ({ watches }, options) => [watchTable(summary.rows(watches), options)],
    };
  },
  preview(found) {
    const planned = found?.watches.planned ?? [];
    return { json: { watches: plannedJson(planned) }, table: found && plannedTable(planned) };
  },
};
