import { clipPlace, isLibraryFile, libraryName, shownFile, shownPlaces } from '../../text/index.js';
import { awaitText } from '../events/await-place.js';
import type { Wake } from '../events/events.js';
import { wakeSourceText } from '../events/text.js';
import { hasRoom, type TableOptions, textTable, timeText } from '../events/text-table.js';
import type { WaitRow } from '../formats/off-cpu.js';

type Column = 'waits' | 'total' | 'ready' | 'avg' | 'max';

/** From the narrowest terminal to the widest. */
const columnSets: readonly (readonly Column[])[] = [
  ['waits', 'total', 'max'],
  ['waits', 'total', 'ready', 'max'],
  ['waits', 'total', 'ready', 'avg', 'max'],
];

/** Columns of text that awaits and wakers get before there are more numbers. */
const TEXT_WIDTH = 60;

/** A line an await of a task and what ends its waits. `ready`: of the time, from the wake to the poll. */
export function offCpuTable(rows: readonly WaitRow[], options: TableOptions): string {
  const lines = rows.map(({ task, at, whole, wokenBy, wake, waker, waits, total, max, runnable }) => {
    const { width, isWhole } = options;
    const clip = (text: string): string => (isWhole ? text : clipPlace(text, width / 4));
    const place = at && awaitText(at, (text) => clip(shownFile(text)));
    return {
      row: {
        waits: String(waits),
        total: timeText(total),
        ready: timeText(runnable),
        avg: timeText(Math.round(total / waits)),
        max: timeText(max),
      },
      name: whole !== undefined ? shownPlaces(whole) : `${task}${place === undefined ? '' : ` at ${place}`}`,
      file: wake ? wakerText(wake, waker, whole !== undefined) : wokenBy,
      line: null,
    };
  });
  const tables = columnSets.map((heads) => ({
    heads,
    lines: lines.map(({ row, ...rest }) => ({ ...rest, numbers: heads.map((head) => row[head]) })),
  }));
  const fitting = tables.findLast((table) => hasRoom(table.heads, table.lines, options, TEXT_WIDTH)) ?? tables[0];
  return textTable(fitting?.heads ?? [], 'task and await', fitting?.lines ?? [], {
    ...options,
    ...{ places: 'woken by', areSentences: true },
  });
}

/** The task first: `shop::auditor in tokio WakeList::wake_all at tokio-1.54.1/src/..`; `isWhole`: the whole name. */
function wakerText(wake: Wake, waker: string | undefined, isWhole: boolean): string {
  const { caller } = wake;
  const isLong = !isWhole && caller.function !== undefined && isLibraryFile(caller.file ?? '');
  const shown = isLong ? { ...caller, function: libraryName(caller.function) } : caller;
  return wakeSourceText({ ...wake, caller: shown }, shownFile, waker);
}
