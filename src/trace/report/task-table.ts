import { plural } from '../../base/plural.js';
import { visible } from '../../base/visible.js';
import type { TaskRow } from '../events/task-summary.js';
import { boundText, type TableOptions, textTable, timeText } from '../events/text-table.js';
import { displayNames, readable } from './summary-table.js';

const wakeHead = ['wakes', 'self', 'to poll', 'longest'];

function wakeCells(row: TaskRow): string[] {
  const { wake_to_poll_avg_ns: average, wake_to_poll_max_ns: longest } = row;
  const times = [average, longest].map((time) => (time === null ? '-' : timeText(time)));
  if (row.wakes === null) return wakeHead.map(() => '-');
  const bound = row.wakes_at_least ? '>=' : '';
  return [`${bound}${row.wakes}`, `${bound}${row.self_wakes}`, ...times];
}

/** What runtimes know: a column for each that some task has. */
const known = ['id', 'name', 'spawned'] as const;

/** Tasks in the table. */
const mostRows = 30;

/**
 * The table of tasks for the user: one line each, the busiest first, and a line that says how many more there are. The
 * place is that of the await where the task waits, or waited last. `hidesDrops`: such a task may be dropped unseen.
 * Empty without tasks.
 */
export function taskTable(
  rows: readonly TaskRow[],
  leftOut: number,
  options: TableOptions,
  hidesDrops: (row: TaskRow) => boolean = () => false,
): string {
  if (rows.length === 0) return '';
  const sorted = [...rows].sort((a, b) => b.busy_ns - a.busy_ns || b.polls - a.polls || a.number - b.number);
  const seesWakes = rows.some(({ wakes }) => wakes !== null);
  const shown = sorted.slice(0, mostRows);
  const names = displayNames(shown.map(({ future, instance }) => [future, readable(instance)]));
  const facts = known.filter((fact) => rows.some((row) => row[fact] !== null));
  const lines = shown.map((row, i) => ({
    numbers: [
      String(row.number),
      ...facts.map((fact) => visible(String(row[fact] ?? '-'))),
      row.state,
      String(row.polls),
      ...[row.busy_ns, row.max_ns].map((time) => boundText(time, row.times_at_most)),
      timeText(row.idle_ns),
      ...(seesWakes ? wakeCells(row) : []),
    ],
    name: names[i] ?? '',
    file: row.await?.file ?? null,
    line: row.await?.line ?? null,
  }));
  const head = ['task', ...facts, 'state', 'polls', 'busy', 'longest', 'idle', ...(seesWakes ? wakeHead : [])];
  const more = sorted.length - shown.length;
  const unsure = rows.filter((row) => row.state === 'waiting' && hidesDrops(row)).length;
  const notes = [
    unsure > 0 &&
      `${plural(unsure, 'task')} of those that wait may have been dropped: the compiler inlined the drop of its Future\n`,
    more > 0 && `... and ${plural(more, 'task')} that ${more === 1 ? 'was' : 'were'} less busy: --json has them\n`,
    leftOut > 0 && `${plural(leftOut, 'task')} more that ended ${leftOut === 1 ? 'has' : 'have'} no row\n`,
  ];
  return `${textTable(head, 'future', lines, { ...options, places: 'last await' })}${notes.filter(Boolean).join('')}`;
}
