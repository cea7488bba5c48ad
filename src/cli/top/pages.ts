// The pages of `rsptrace top`, as lines of text.
import type { FoundTasks } from '../../api/index.js';
import type { Deadlock, Task } from '../../async/tasks/index.js';
import { clipEnd, plural, visible } from '../../text/index.js';
import { notesOf, taskLines } from '../tasks-report.js';
import type { Content, Item } from './app.js';
import { idOf, type Mark, type Row, type Status, statuses } from './history.js';
import { byStatus, resourcesOf } from './json.js';
import type { Look } from './look.js';
import { type Style, selectable, styled, tableOf } from './screen.js';

type RowItem = Row & Item;

/** What a page is made of. */
export interface Shown {
  readonly look: Look;
  readonly rows: readonly Row[];
  readonly findings: Pick<FoundTasks, 'deadlocks' | 'lost'>;
  /** `process 123 (server)`. */
  readonly target: string;
  /** Looks a second, as they come. */
  readonly rate: number | undefined;
}

const colors: Partial<Record<Status, Style>> = {
  running: 'green',
  blocked: 'red',
  changing: 'yellow',
  scheduled: 'cyan',
};

/** Two lines of what the target is and does, and one for each finding. */
function headLines({ look, rows, findings, target, rate }: Shown, columns: number): string[] {
  const { found, threads, stoodMs, number } = look;
  const every = rate === undefined ? '' : `, ${rate.toFixed(1)}/s`;
  const ran = threads === undefined ? '' : `  ${threads.running} of ${plural(threads.all, 'thread')} run`;
  const stood = threads === undefined ? `  stood ${stoodMs.toFixed(1)} ms` : '  never stopped';
  const counts = byStatus(rows);
  const states = statuses.flatMap((status) => (counts[status] ? [`${counts[status]} ${status}`] : []));
  const ended = found.others.filter(({ fate }) => fate === 'ended').length;
  const notes = found.notes.length === 0 ? '' : `  (? has ${plural(found.notes.length, 'note')})`;
  const runtimes = found.runtimes.filter((name) => name !== 'search').join(', ');
  const stuck = [
    ...findings.deadlocks.map(deadlockText),
    ...findings.lost.map((task) => `lost wake: task ${idOf(task)}`),
  ];
  return [
    styled('bold', clipEnd(visible(`${target}  look ${number}${every}${ran}${stood}`), columns)),
    clipEnd(
      visible(
        `${plural(rows.length, 'task')}: ${states.join(', ') || 'none'}${ended ? `  and ${ended} ended` : ''}  ${runtimes}${notes}`,
      ),
      columns,
    ),
    ...(found.noTask
      ? [clipEnd(visible(`no task, because ${found.noTask.why}: ${found.noTask.wayOut}`), columns)]
      : []),
    ...stuck.map((line) => styled('red', clipEnd(visible(line), columns))),
  ];
}

function deadlockText({ cycle, likely }: Deadlock<Task>): string {
  const ids = cycle.map(({ task }) => idOf(task)).join(', ');
  return `${likely ? 'likely ' : ''}deadlock: ${ids} ${cycle.length === 1 ? 'waits for itself' : 'wait for each other'}`;
}

const sorts = ['active', 'for', 'state', 'name', 'id'] as const;
type Sort = (typeof sorts)[number];

/** One for all pairs, since a row may be one of 100,000. */
const { compare: byNumber } = new Intl.Collator('en', { numeric: true });

function sorted(rows: readonly RowItem[], sort: Sort): RowItem[] {
  const by: Readonly<Record<Sort, (a: Row, b: Row) => number>> = {
    active: (a, b) => b.active / b.looks - a.active / a.looks,
    for: (a, b) => b.forMs - a.forMs,
    state: (a, b) => statuses.indexOf(a.status) - statuses.indexOf(b.status),
    name: (a, b) => a.name.localeCompare(b.name),
    id: () => 0,
  };
  return rows.toSorted((a, b) => by[sort](a, b) || byNumber(a.id, b.id));
}

/** What a wait may take of a line, and what it has at least. */
const WAIT_SHARE = 3;
const LEAST_WAIT = 14;

/** A title, and a line a row. `selected`: its index. */
function tableLines(rows: readonly Row[], selected: number, columns: number): string[] {
  const room = Math.max(LEAST_WAIT, Math.floor(columns / WAIT_SHARE));
  const cells = rows.map((row) => [
    ...[row.id, row.status, spanText(row.forMs), share(row.active, row.looks)],
    ...[row.name, row.place, clipEnd(visible(row.waits), room)],
  ]);
  const titles = ['id>', 'state', 'for>', 'act%>', 'task~', 'awaits at/', 'waits for'];
  return tableOf(titles, cells, columns, (line, i) =>
    selectable(line, columns, { isSelected: i === selected, style: colors[rows[i]?.status ?? 'waiting'] }),
  );
}

function share(part: number, all: number): string {
  return String(Math.round((100 * part) / Math.max(1, all)));
}

/** `0.4s`, `12s`, `3m20s`, `2h05m`. */
function spanText(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  if (seconds < 100) return `${Math.round(seconds)}s`;
  const minutes = Math.floor(seconds / 60);
  const two = (number: number): string => String(number).padStart(2, '0');
  return minutes < 60
    ? `${minutes}m${two(Math.floor(seconds % 60))}s`
    : `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
}

const bars: Readonly<Record<Status, string>> = {
  running: '█',
  blocked: '▓',
  changing: '▆',
  scheduled: '▄',
  waiting: '▁',
  new: '·',
};

function sparkline(marks: readonly Mark[]): string {
  return marks.map(({ status, changed }) => (status === 'waiting' && changed ? '▃' : bars[status])).join('');
}

/** All that is known of one task. */
async function taskPage({ look, rows }: Shown, row: Row, columns: number): Promise<string[]> {
  const isThere = rows.some(({ key }) => key === row.key);
  const { looks, ran, changed } = row;
  const line = (text: string): string => clipEnd(visible(text), columns);
  const holders = rows.filter(({ task }) =>
    (look.found.waits.get(row.task) ?? []).some(({ enders }) => enders.some((each) => each.task === task)),
  );
  const waiting = rows.filter(({ task }) =>
    (look.found.waits.get(task) ?? []).some(({ enders }) => enders.some((each) => each.task === row.task)),
  );
  return [
    styled('bold', line(`task ${row.id}  ${row.name}`)),
    ...(isThere ? [] : [styled('red', 'it is gone: it has ended')]),
    line(`${row.status}, as it is for ${spanText(row.forMs)} at the least`),
    line(`in ${plural(looks, 'look')}: ran in ${ran}, changed since the look before in ${changed}`),
    line(sparkline(row.marks)),
    line('█ running ▓ blocked ▆ changing ▄ scheduled ▃ had changed ▁ as before · new'),
    '',
    ...(await taskLines({ found: look.found, fields: undefined, width: columns }, row.task)).map(line),
    ...(holders.length > 0 ? ['', line('who can end its wait:'), ...holders.map((each) => line(rowText(each)))] : []),
    ...(waiting.length > 0 ? ['', line('who waits for it:'), ...waiting.map((each) => line(rowText(each)))] : []),
  ];
}

function rowText({ id, name, status, place, waits }: Row): string {
  return `  ${id}  ${name}  ${status}${place === '' ? '' : `  ${place}`}${waits === '' ? '' : `  ${waits}`}`;
}

/** A line a lock, channel or semaphore that a task waits for. */
function resourcePage({ look }: Shown, columns: number): string[] {
  const resources = resourcesOf(look.found);
  const ids = (tasks: readonly Task[]): string => tasks.map(idOf).join(', ');
  const cells = resources.map(({ kind, symbol, address, waiting, how, by }) => [
    ...[kind, symbol ?? address, String(waiting.length), ids(waiting)],
    by.length === 0 ? '' : `${how} ${ids(by)}`,
  ]);
  if (cells.length === 0) return ['no task waits for a lock, a channel or a semaphore that is known'];
  return tableOf(['what', 'which~', 'waiting>', 'tasks~', 'who can end it~'], cells, columns);
}

/** The keys, for any content. */
export const keysHelp = (sorts: readonly string[]): string[] => [
  'up down j k, page up, page down, home, end   move',
  'return    open a task          escape, backspace   back',
  `s         sort by: ${sorts.join(', ')}`,
  '/         show only tasks with this text in a column; return ends it, an empty one shows all',
  'r         locks, channels and semaphores with those who wait',
  'p space   pause: no more looks until it is pressed again',
  'w         write this look as JSON into a file',
  'q ctrl-c  quit; the target goes on as it was',
];

const helpPage = [
  ...keysHelp(sorts),
  '',
  'All is what looks see: what happens between two of them is not. There is no count of polls, and no busy time.',
  'for    how long nothing of the task has changed, at the least: since the first look that saw it so',
  'act%   in how many looks it ran, or was not as at the look before',
  'changing   its memory changed while it was copied: it was polled then, or somebody wrote to it',
  'blocked    a thread polls it and waits in the kernel',
  'new        not polled yet',
];

/** What looks have found, for the screen. */
export function looksContent(shown: Shown): Content<RowItem> {
  const items = shown.rows.map((row) => ({
    ...row,
    text: [row.id, row.status, row.name, row.place, row.waits].join(' '),
  }));
  return {
    items,
    sorts,
    head: (columns) => headLines(shown, columns),
    sorted: (rows, sort) => sorted(rows, sort as Sort),
    table: tableLines,
    page: (row, columns) => taskPage(shown, row, columns),
    resources: (columns) => resourcePage(shown, columns),
    help: [...helpPage, '', ...notesOf(shown.look.found)],
  };
}
