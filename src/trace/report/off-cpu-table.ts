import { shownFile } from '../../base/shown-place.js';
import { placeText } from '../text.js';
import { type TableOptions, textTable, timeText } from '../text-table.js';
import type { WaitRow } from './off-cpu.js';

/** A line an await of a task and what ends its waits. `ready`: of the time, from the wake to the poll. */
export function offCpuTable(rows: readonly WaitRow[], options: TableOptions): string {
  const lines = rows.map(({ task, at, wokenBy, waits, total, max, runnable }) => {
    const place = at && placeText(at);
    return {
      numbers: [String(waits), timeText(total), timeText(runnable), timeText(Math.round(total / waits)), timeText(max)],
      name: `${task}${place === undefined ? '' : ` at ${shownFile(place)}`}`,
      file: shownSource(wokenBy),
      line: null,
    };
  });
  const heads = ['waits', 'total', 'ready', 'avg', 'max'];
  return textTable(heads, 'task and await', lines, { ...options, places: 'woken by' });
}

/** `sender in sender::{async_fn#0} at src/waits.rs:105`, with the place as people read it. */
function shownSource(wokenBy: string): string {
  const at = wokenBy.lastIndexOf(PLACE);
  return at < 0 ? wokenBy : wokenBy.slice(0, at) + PLACE + shownFile(wokenBy.slice(at + PLACE.length));
}

const PLACE = ' at ';
