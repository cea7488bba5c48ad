import { insideText } from '../events/await-place.js';
import type { FunctionRow } from '../events/function-summary.js';
import type { SummaryRow } from '../events/summary.js';
import type { TaskRow } from '../events/task-summary.js';
import { boundText, timeText } from '../events/text-table.js';
import type { HtmlTables, HtmlWait } from '../formats/html/tables.js';
import { countText, totalText } from '../report/summary-table.js';
import { el, placeOf } from './dom.js';
import type { Place } from './places.js';

/** More rows make a page slow. */
const MOST = 500;

/** A column: what a cell shows, and what it is sorted by where that is not its text. */
interface Column<T> {
  readonly title: string;
  readonly text: (row: T) => string;
  readonly value?: (row: T) => number | null;
}

const none = '-';
const timeOrNone = (time: number | null, isBound?: boolean): string =>
  time === null ? none : boundText(time, isBound);

type Awaited = {
  readonly file?: string | undefined;
  readonly line?: number | null | undefined;
  readonly inside?: string | undefined;
};
const awaitOf = ({ file, line, inside }: Awaited): string => `${placeOf(file, line)}${insideText({ inside })}`;

const futures: readonly Column<SummaryRow>[] = [
  { title: 'future', text: (row) => row.future },
  ...(['polls', 'ready', 'pending', 'panicked', 'cancelled', 'derived', 'lost'] as const).map((count) => ({
    title: count,
    text: (row: SummaryRow) => countText(row, count),
    value: (row: SummaryRow) => row[count],
  })),
  // Derived polls have no time, because their begin was not seen.
  { title: 'total', text: (row) => (isTimed(row) ? totalText(row) : none), value: (row) => row.total_ns },
  {
    title: 'longest',
    text: (row) => (isTimed(row) ? boundText(row.max_ns, row.times_at_most) : none),
    value: (row) => row.max_ns,
  },
  { title: 'declared at', text: ({ file, line }) => placeOf(file, line) },
];

const isTimed = ({ polls, derived, lost }: SummaryRow): boolean => polls > derived + lost;

const tasks: readonly Column<TaskRow>[] = [
  { title: 'task', text: (row) => String(row.number), value: (row) => row.number },
  { title: 'future', text: (row) => row.future + (row.name === null ? '' : ` (${row.name})`) },
  { title: 'id', text: (row) => String(row.id ?? none), value: (row) => row.id },
  { title: 'state', text: (row) => row.state },
  { title: 'polls', text: (row) => String(row.polls), value: (row) => row.polls },
  { title: 'busy', text: (row) => boundText(row.busy_ns, row.times_at_most), value: (row) => row.busy_ns },
  { title: 'longest', text: (row) => boundText(row.max_ns, row.times_at_most), value: (row) => row.max_ns },
  { title: 'idle', text: (row) => timeText(row.idle_ns), value: (row) => row.idle_ns },
  {
    title: 'wakes',
    text: (row) => (row.wakes === null ? none : `${row.wakes_at_least ? '>=' : ''}${row.wakes}`),
    value: (row) => row.wakes,
  },
  { title: 'to poll', text: (row) => timeOrNone(row.wake_to_poll_avg_ns), value: (row) => row.wake_to_poll_avg_ns },
  {
    title: 'longest to poll',
    text: (row) => timeOrNone(row.wake_to_poll_max_ns),
    value: (row) => row.wake_to_poll_max_ns,
  },
  { title: 'last await', text: (row) => awaitOf(row.await ?? {}) },
];

const functions: readonly Column<FunctionRow>[] = [
  { title: 'function', text: (row) => row.function },
  { title: 'calls', text: (row) => `${row.at_least ? '>=' : ''}${row.calls}`, value: (row) => row.calls },
  { title: 'lost', text: (row) => String(row.lost), value: (row) => row.lost },
  { title: 'total', text: (row) => (row.calls > row.lost ? totalText(row) : none), value: (row) => row.total_ns },
  ...(['self', 'avg', 'max'] as const).map((name) => ({
    title: { self: 'self', avg: 'average', max: 'longest' }[name],
    text: (row: FunctionRow) => (row.calls > row.lost ? boundText(row[`${name}_ns`], row.times_at_most) : none),
    value: (row: FunctionRow) => row[`${name}_ns`],
  })),
  { title: 'declared at', text: ({ file, line }) => placeOf(file, line) },
];

const waits: readonly Column<HtmlWait>[] = [
  { title: 'task', text: (row) => row.task },
  { title: 'awaits at', text: awaitOf },
  { title: 'woken by', text: (row) => row.wokenBy },
  { title: 'waits', text: (row) => String(row.waits), value: (row) => row.waits },
  { title: 'total', text: (row) => timeText(row.total), value: (row) => row.total },
  { title: 'woken, not polled', text: (row) => timeText(row.runnable), value: (row) => row.runnable },
  {
    title: 'average',
    text: (row) => timeText(Math.round(row.total / row.waits)),
    value: (row) => row.total / row.waits,
  },
  { title: 'longest', text: (row) => timeText(row.max), value: (row) => row.max },
];

const findings: readonly Column<HtmlTables['findings'][number]>[] = [
  { title: 'task', text: (row) => String(row.task), value: (row) => row.task },
  { title: 'finding', text: (row) => row.kind },
  { title: 'future', text: (row) => row.future },
  { title: 'at', text: ({ file, line }) => placeOf(file, line) },
  { title: 'what', text: (row) => row.text },
];

const probes: readonly Column<HtmlTables['probes'][number]>[] = [
  { title: 'probe', text: (row) => row.name },
  { title: 'engine', text: (row) => (row.engine === 'none' ? 'left out' : row.engine) },
  { title: 'why', text: ({ why, partly, extra }) => [extra, why, partly].filter(Boolean).join('; ') },
];

/** A table, or a list of them, for a part of the page. `filter`: rows with that text alone. */
export type Shown = (filter: string) => readonly (Node | string)[];

/** By the title of their tab. Each is sorted by the column named with it, the most first. `show`: in the timeline. */
export function tablesOf(all: HtmlTables, show: (place: Place) => void): ReadonlyMap<string, Shown> {
  const leading = <T>(placeOfRow: (row: T) => Place) => ({ lead: (row: T): void => show(placeOfRow(row)) });
  const ofFuture = leading<SummaryRow>(({ instance }) => ({ kinds: ['poll'], instance }));
  const ofTask = leading<TaskRow>(({ number }) => ({ kinds: ['poll', 'wait'], task: number }));
  const ofFunction = leading<FunctionRow>(({ instance }) => ({ kinds: ['call'], instance }));
  const ofWait = leading<HtmlWait>((row) => ({ kinds: ['wait'], name: awaitOf(row) || 'waiting' }));
  const ofFinding = leading<HtmlTables['findings'][number]>(({ kind: name, task, times_ns: [at] }) => {
    return { kinds: ['finding'], name, task, at };
  });
  return new Map<string, Shown>([
    ['Futures', tableOf('futures', futures, all.futures, { sortedBy: 'total', ...ofFuture })],
    ['Tasks', tableOf('tasks', tasks, all.tasks, { sortedBy: 'busy', ...ofTask })],
    ['Functions', tableOf('functions', functions, all.functions, { sortedBy: 'total', ...ofFunction })],
    ['Waits', tableOf('awaits of tasks, by what ended them', waits, all.waits, { sortedBy: 'total', ...ofWait })],
    ['Findings', tableOf('findings', findings, all.findings, ofFinding)],
    ['Not seen', notSeen(all)],
  ]);
}

interface TableUse<T> {
  /** A column's title. */
  readonly sortedBy?: string;
  /** To where the row is about. */
  readonly lead?: (row: T) => void;
}

function notSeen({ notes, probes: left }: HtmlTables): Shown {
  const table = tableOf('probes that were left out, or do not see every hit', probes, left);
  return (filter) => [
    ...notes.map((note) => el('p', { class: 'note' }, note)),
    ...(left.length > 0 ? table(filter) : []),
  ];
}

function tableOf<T>(
  caption: string,
  columns: readonly Column<T>[],
  rows: readonly T[],
  { sortedBy, lead }: TableUse<T> = {},
): Shown {
  let by = columns.find(({ title }) => title === sortedBy);
  let isUp = false;
  let most = MOST;
  return (filter) => {
    const body = el('tbody');
    const title = el('caption');
    const more = el('button', { type: 'button' }, 'show all rows');
    const head = columns.map((column) => {
      const button = el('button', { type: 'button' }, column.title);
      button.addEventListener('click', () => {
        isUp = by === column ? !isUp : column.value === undefined;
        by = column;
        fill();
      });
      return el('th', { scope: 'col', class: column.value ? '' : 'text' }, button);
    });
    const fill = (): void => {
      const found = matching(columns, rows, filter);
      if (by) found.sort((a, b) => (isUp ? 1 : -1) * compareBy(by as Column<T>, a, b));
      for (const [i, cell] of head.entries())
        cell.setAttribute('aria-sort', columns[i] !== by ? 'none' : isUp ? 'ascending' : 'descending');
      body.replaceChildren(...found.slice(0, most).map((row) => lineOf(columns, row, lead)));
      const shown = found.length > most ? `${most} of ${found.length}` : String(found.length);
      title.textContent = `${caption}: ${shown}${filter === '' ? '' : ` with “${filter}”`}`;
      more.hidden = found.length <= most;
    };
    more.addEventListener('click', () => {
      most = Number.POSITIVE_INFINITY;
      fill();
    });
    fill();
    return [el('table', {}, title, el('thead', {}, el('tr', {}, ...head)), body), more];
  };
}

function matching<T>(columns: readonly Column<T>[], rows: readonly T[], filter: string): T[] {
  const wanted = filter.toLowerCase();
  return rows.filter((row) => wanted === '' || columns.some(({ text }) => text(row).toLowerCase().includes(wanted)));
}

function compareBy<T>({ text, value }: Column<T>, a: T, b: T): number {
  if (value) return (value(a) ?? -1) - (value(b) ?? -1);
  const [one, other] = [text(a), text(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** A click leads to its place; not one that ends the selection of a text. */
function lineOf<T>(columns: readonly Column<T>[], row: T, lead: TableUse<T>['lead']): HTMLElement {
  const cells = columns.map(({ text, value }) => el('td', { class: value ? '' : 'text' }, text(row)));
  if (lead === undefined) return el('tr', {}, ...cells);
  const line = el('tr', { class: 'leads', tabindex: '0', title: 'Show the longest in the timeline' }, ...cells);
  line.addEventListener('click', () => {
    if (String(getSelection() ?? '') === '') lead(row);
  });
  line.addEventListener('keydown', ({ key }) => {
    if (key === 'Enter') lead(row);
  });
  return line;
}
