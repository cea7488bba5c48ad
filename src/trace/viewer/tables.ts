import { insideText } from '../events/await-place.js';
import type { FunctionRow } from '../events/function-summary.js';
import type { SummaryRow } from '../events/summary.js';
import type { TaskRow } from '../events/task-rows.js';
import { timeText } from '../events/text-table.js';
import type { HtmlTables, HtmlWait } from '../formats/html/tables.js';
import { type Column, functionColumns, futureColumns, taskColumns, wakeColumns } from '../report/summary-table.js';
import { el, placeOf } from './dom.js';
import type { Place } from './find.js';

/** More rows make a page slow. */
const MOST = 500;

type Awaited = {
  readonly file?: string | undefined;
  readonly line?: number | null | undefined;
  readonly inside?: string | undefined;
};
type Declared = { readonly file: string | null; readonly line: number | null };
const awaitOf = ({ file, line, inside }: Awaited): string => `${placeOf(file, line)}${insideText({ inside })}`;

const declared = { title: 'declared at', text: ({ file, line }: Declared) => placeOf(file, line) };

const futures: readonly Column<SummaryRow>[] = [
  { title: 'future', text: (row) => row.future },
  ...futureColumns,
  declared,
];

const tasks: readonly Column<TaskRow>[] = [
  { title: 'task', text: (row) => String(row.number), value: (row) => row.number },
  { title: 'future', text: (row) => row.future + (row.name === null ? '' : ` (${row.name})`) },
  { title: 'id', text: (row) => String(row.id ?? '-'), value: (row) => row.id },
  ...taskColumns,
  ...wakeColumns
    .filter(({ title }) => title !== 'self')
    .map((column) => ({ ...column, title: column.title.replace('longest', 'longest to poll') })),
  { title: 'last await', text: (row) => awaitOf(row.await ?? {}) },
];

const functions: readonly Column<FunctionRow>[] = [
  { title: 'function', text: (row) => row.function },
  ...functionColumns,
  declared,
];

const waits: readonly Column<HtmlWait>[] = [
  { title: 'task', text: (row) => row.task },
  { title: 'awaits at', text: ({ at }) => awaitOf(at ?? {}) },
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
  { ...declared, title: 'at' },
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
  const ofWait = leading<HtmlWait>((row) => ({
    kinds: ['wait'],
    name: awaitOf(row.at ?? {}) || 'waiting',
    length: row.max,
  }));
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
