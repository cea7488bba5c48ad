import { hex } from '../../../base/addr.js';
import { type ColumnsOptions, textTable } from '../../../text/index.js';
import { type WatchAccess, type WatchRow, WatchSummary } from '../../../trace/index.js';
import type { Found, FoundWatches, ProbeKind } from '../kind.js';
import { knownPlaces, type PlannedWatch, resolveWatches } from './resolve.js';
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

const words: Readonly<Record<WatchAccess, string>> = { r: 'reads', w: 'writes', rw: 'reads and writes' };

/** For people: one line a watched place. */
function watchTable(rows: readonly WatchRow[], options: ColumnsOptions): string {
  const titles = ['writes>', 'changed>', 'reads>', 'unclear>', 'last value~', 'address', 'type~', 'watch~'];
  const unclear = rows.some(({ accesses }) => accesses > 0);
  const cells = rows.map((row) => [
    String(row.writes),
    String(row.changed),
    String(row.reads),
    String(row.accesses),
    row.last ?? '-',
    row.address,
    row.type,
    `${row.watch} (${words[row.access]}${row.access === row.asked ? '' : `: ${words[row.asked]} alone cannot be had here`})`,
  ]);
  const kept = titles.map((_, index) => unclear || index !== 3);
  const pick = (line: readonly string[]): string[] => line.filter((_, index) => kept[index]);
  return textTable(pick(titles), cells.map(pick), options);
}

/** For --dry-run. */
function plannedTable(watches: readonly PlannedWatch[]): string {
  const rows = watches.map(({ spec, place }) => [
    place ? hex(place.address) : 'known at the start',
    place ? String(place.size) : '',
    spec.name,
    words[spec.access],
  ]);
  return textTable(['address', 'bytes>', 'watch', 'stops at'], rows, { color: false });
}

/** The same for `--json`. */
function plannedJson(watches: readonly PlannedWatch[]): object[] {
  return watches.map(({ spec, place }) => ({
    watch: spec.name,
    access: spec.access,
    ...(place && { address: hex(place.address), size: place.size, type: place.shape.name }),
  }));
}
