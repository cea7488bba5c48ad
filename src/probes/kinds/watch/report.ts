import { hex } from '../../../base/addr.js';
import { type ColumnsOptions, textTable } from '../../../text/index.js';
import type { WatchAccess, WatchRow } from '../../../trace/index.js';
import type { PlannedWatch } from './resolve.js';

const words: Readonly<Record<WatchAccess, string>> = { r: 'reads', w: 'writes', rw: 'reads and writes' };

/** For people: one line a watched place. */
export function watchTable(rows: readonly WatchRow[], options: ColumnsOptions): string {
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
export function plannedTable(watches: readonly PlannedWatch[]): string {
  const rows = watches.map(({ spec, place }) => [
    place ? hex(place.address) : 'known at the start',
    place ? String(place.size) : '',
    spec.name,
    words[spec.access],
  ]);
  return textTable(['address', 'bytes>', 'watch', 'stops at'], rows, { color: false });
}

/** The same for `--json`. */
export function plannedJson(watches: readonly PlannedWatch[]): object[] {
  return watches.map(({ spec, place }) => ({
    watch: spec.name,
    access: spec.access,
    ...(place && { address: hex(place.address), size: place.size, type: place.shape.name }),
  }));
}
