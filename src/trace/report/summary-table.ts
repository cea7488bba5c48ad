import { plural, sharedBy, visible } from '../../text/index.js';
import { INLINED_NOTE, LEFT_OUT_NOTE } from '../events/bounds.js';
import type { FunctionRow } from '../events/function-summary.js';
import { futureNames, linesNames, type Named, readable } from '../events/future-names.js';
import { compare, type SummaryRow } from '../events/summary.js';
import type { TaskRow } from '../events/task-rows.js';
import { boundText, type TableOptions, tableNotes, textTable, timeText, timeWithError } from '../events/text-table.js';

type Count = 'polls' | 'ready' | 'pending' | 'panicked' | 'cancelled' | 'derived' | 'lost';

/** Counts for which a row may know only a lower bound. */
const BOUNDS: ReadonlySet<Count> = new Set(['polls', 'ready', 'pending']);
const UNKNOWN_NOTE =
  'of some polls that were inlined memory does not tell the result: they count as neither ready nor pending (>=)';

const DROPS_NOTE =
  'cancelled: dropped before they were ready; those whose drop was inlined, left out or lost leave no mark (- and >=)';
const BY_HAND_NOTE =
  'a Future written by hand inside a task does not show whether it was dropped before it was ready (- and >=)';

/** More Futures are only counted in a note. */
const MOST_NAMED = 3;

/** A column of a table: what a cell shows, and what it is sorted by where that is not its text. */
export interface Column<T> {
  readonly title: string;
  readonly text: (row: T) => string;
  readonly value?: (row: T) => number | null;
}

const NONE = '-';

/** Shown if any row has one. */
const RARE: readonly string[] = ['panicked', 'cancelled', 'derived', 'lost'] satisfies readonly Count[];

/** Derived polls have no duration, because their begin was not seen. */
const isTimed = ({ polls, derived, lost }: SummaryRow): boolean => polls > derived + lost;

/** Numbers of a Future. */
export const futureColumns: readonly Column<SummaryRow>[] = [
  ...(['polls', 'ready', 'pending', 'panicked', 'cancelled', 'derived', 'lost'] as const).map((count) => ({
    title: count,
    text: (row: SummaryRow) => countText(row, count),
    value: (row: SummaryRow) => row[count],
  })),
  { title: 'total', text: (row) => (isTimed(row) ? totalText(row) : NONE), value: (row) => row.total_ns },
  {
    title: 'longest',
    text: (row) => (isTimed(row) ? boundText(row.max_ns, row.times_at_most) : NONE),
    value: (row) => row.max_ns,
  },
];

/** Numbers of a function. */
export const functionColumns: readonly Column<FunctionRow>[] = [
  { title: 'calls', text: (row) => `${row.at_least ? '>=' : ''}${row.calls}`, value: (row) => row.calls },
  { title: 'lost', text: (row) => String(row.lost), value: (row) => row.lost },
  { title: 'total', text: (row) => (row.calls > row.lost ? totalText(row) : NONE), value: (row) => row.total_ns },
  ...(['self', 'avg', 'max'] as const).map((name) => ({
    title: { self: 'self', avg: 'average', max: 'longest' }[name],
    text: (row: FunctionRow) => (row.calls > row.lost ? boundText(row[`${name}_ns`], row.times_at_most) : NONE),
    value: (row: FunctionRow) => row[`${name}_ns`],
  })),
];

/** Those of rare things only if there are such. */
function shownOf<T>(columns: readonly Column<T>[], rows: readonly T[]): readonly Column<T>[] {
  return columns.filter(({ title, value }) => !RARE.includes(title) || rows.some((row) => (value?.(row) ?? 0) > 0));
}

const titlesOf = (columns: readonly { readonly title: string }[]): string[] => columns.map(({ title }) => title);

/**
 * The table for the user: one line per Future, the one with the most time first, each line ended by a newline.
 * Instances of one generic Future differ in their generic arguments. Lines below say what `>=` means and which polls
 * have no result, if a row has them.
 */
export function summaryTable(rows: readonly SummaryRow[], options: TableOptions): string {
  if (rows.length === 0) return 'no polls were recorded\n';
  const sorted = [...rows].sort(
    (a, b) => b.total_ns - a.total_ns || compare(a.future, b.future) || compare(a.instance, b.instance),
  );
  const columns = shownOf(futureColumns, rows);
  const nameOf = linesNames(sorted);
  const lines = sorted.map((row) => ({
    numbers: columns.map(({ text }) => text(row)),
    name: nameOf(row),
    file: row.file,
    line: row.line,
  }));
  const table = textTable(titlesOf(columns), 'future', lines, options);
  const hasCancelled = rows.some(({ cancelled }) => cancelled > 0);
  const notes = [
    rows.some((row) => row.at_least && !row.probe_left_out) && INLINED_NOTE,
    rows.some((row) => row.probe_left_out) && LEFT_OUT_NOTE,
    hasCancelled ? rows.some((row) => isHidden(row) && !isByHand(row)) && DROPS_NOTE : unseenDropsNote(rows),
    hasCancelled && rows.some((row) => isHidden(row) && isByHand(row)) && BY_HAND_NOTE,
    rows.some(({ unknown }) => unknown > 0) && UNKNOWN_NOTE,
  ];
  return `${table}${tableNotes(notes, options)}`;
}

const isHidden = (row: SummaryRow): boolean => row.cancelled_at_least;
const isByHand = ({ kind }: SummaryRow): boolean => kind === 'impl';

/**
 * Where no row has a `cancelled` one, and those that may have waited had drops which leave no mark. Of those written by
 * hand that is the rule.
 */
function unseenDropsNote(rows: readonly SummaryRow[]): string | false {
  const mayHave = ({ polls, ready, panicked }: SummaryRow): boolean => polls > ready + panicked;
  const hidden = rows.filter((row) => isHidden(row) && !isByHand(row));
  const names = [...new Set(hidden.filter(mayHave).map(({ future }) => future))].sort(compare);
  if (names.length === 0) return false;
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : '';
  const named = `${names.slice(0, MOST_NAMED).join(', ')}${more}`;
  return `no Future was seen to be dropped before it was ready; of these that would not be seen, because their drops are inlined, left out or lost: ${named}`;
}

function countText(row: SummaryRow, name: Count): string {
  if (name === 'cancelled' && row.cancelled_at_least && row.cancelled === 0) return '-';
  const isResult = name === 'ready' || name === 'pending';
  const isBound =
    name === 'cancelled' ? row.cancelled_at_least : (row.at_least && BOUNDS.has(name)) || (isResult && row.unknown > 0);
  return `${isBound ? '>=' : ''}${row[name]}`;
}

function totalText(row: Pick<SummaryRow, 'total_ns' | 'total_error_ns' | 'times_at_most'>): string {
  return row.times_at_most ? boundText(row.total_ns, true) : timeWithError(row.total_ns, row.total_error_ns);
}

/** The same of functions: one line each, the one with the most time first. */
export function functionTable(rows: readonly FunctionRow[], options: TableOptions): string {
  if (rows.length === 0) return 'no calls were recorded\n';
  const sorted = [...rows].sort(
    (a, b) => b.total_ns - a.total_ns || compare(a.function, b.function) || compare(a.instance, b.instance),
  );
  const columns = shownOf(functionColumns, rows);
  const isShared = sharedBy(
    sorted,
    (row) => row.function,
    (row) => row.instance,
  );
  const lines = sorted.map((row) => ({
    numbers: columns.map(({ text }) => text(row)),
    name: isShared(row) ? row.instance : row.function,
    file: row.file,
    line: row.line,
  }));
  const table = textTable(titlesOf(columns), 'function', lines, options);
  return `${table}${tableNotes([rows.some((row) => row.at_least) && LEFT_OUT_NOTE], options)}`;
}

/** The same of functions and Futures, whose names say `poll` where they are polled. */
export function namesOf<T extends { readonly name: string; readonly instance: string }>(
  all: Iterable<T>,
): ReadonlyMap<T | undefined, string> {
  const each = [...new Set(all)];
  const long = ({ name, instance }: T): string => `${name.startsWith('poll ') ? 'poll ' : ''}${readable(instance)}`;
  const isShared = sharedBy(each, ({ name }) => name, long);
  return new Map(each.map((one) => [one, isShared(one) ? long(one) : one.name]));
}

/** Numbers of a task. */
export const taskColumns: readonly Column<TaskRow>[] = [
  { title: 'state', text: (row) => row.state },
  { title: 'polls', text: (row) => String(row.polls), value: (row) => row.polls },
  { title: 'busy', text: (row) => boundText(row.busy_ns, row.times_at_most), value: (row) => row.busy_ns },
  { title: 'longest', text: (row) => boundText(row.max_ns, row.times_at_most), value: (row) => row.max_ns },
  { title: 'idle', text: (row) => timeText(row.idle_ns), value: (row) => row.idle_ns },
];

/** Those of wakes, in a trace that has some. */
export const wakeColumns = [
  ...(['wakes', 'self_wakes'] as const).map((count) => ({
    title: { wakes: 'wakes', self_wakes: 'self' }[count],
    text: (row: TaskRow) => (row.wakes === null ? NONE : `${row.wakes_at_least ? '>=' : ''}${row[count]}`),
    value: (row: TaskRow) => row[count],
  })),
  ...(['wake_to_poll_avg_ns', 'wake_to_poll_max_ns'] as const).map((time) => ({
    title: { wake_to_poll_avg_ns: 'to poll', wake_to_poll_max_ns: 'longest' }[time],
    text: (row: TaskRow) => (row.wakes === null || row[time] === null ? NONE : timeText(row[time])),
    value: (row: TaskRow) => row[time],
  })),
] satisfies readonly Column<TaskRow>[];

/** What runtimes know: a column for each that some task has. */
const known = ['id', 'name', 'spawned'] as const;

/** Tasks in the table. */
const mostRows = 30;
/** Where there are more, those of one Future that have a row. */
const mostAlike = 5;
/** Futures of further tasks that are named. */
const mostNamed = 5;

/**
 * The table of tasks for the user: one line each, the busiest first, and a line that says how many more there are. The
 * place is that of the await where the task waits, or waited last. `hidesDrops`: such a task may be dropped unseen.
 * `among`: the Futures that other tables name. Empty without tasks.
 */
export function taskTable(
  rows: readonly TaskRow[],
  leftOut: number,
  options: TableOptions,
  hidesDrops: (row: TaskRow) => boolean = () => false,
  among: Iterable<Named> = rows,
): string {
  if (rows.length === 0) return '';
  const sorted = [...rows].sort((a, b) => b.busy_ns - a.busy_ns || b.polls - a.polls || a.number - b.number);
  const columns = [...taskColumns, ...(rows.some(({ wakes }) => wakes !== null) ? wakeColumns : [])];
  const nameOf = futureNames(among);
  const { shown, more } = shownTasks(sorted, nameOf);
  const facts = known.filter((fact) => rows.some((row) => row[fact] !== null));
  const lines = shown.map((row) => ({
    numbers: [
      String(row.number),
      ...facts.map((fact) => visible(String(row[fact] ?? '-'))),
      ...columns.map(({ text }) => text(row)),
    ],
    name: nameOf(row),
    file: row.await?.file ?? null,
    line: row.await?.line ?? null,
    inside: row.await?.inside,
  }));
  const head = ['task', ...facts, ...titlesOf(columns)];
  const unsure = rows.filter((row) => row.state === 'waiting' && hidesDrops(row)).length;
  const notes = [
    unsure > 0 &&
      `${plural(unsure, 'task')} that ${unsure === 1 ? 'waits' : 'wait'} may be gone: ${unsure === 1 ? 'its drop is' : 'their drops are'} inlined, so that no drop is seen\n`,
    more.length > 0 && `... and ${more.join(', ')} that were less busy: --json has them\n`,
    leftOut > 0 && `${plural(leftOut, 'task')} more that ended ${leftOut === 1 ? 'has' : 'have'} no row\n`,
  ];
  return `${textTable(head, 'future', lines, { ...options, places: 'last await' })}${notes.filter(Boolean).join('')}`;
}

/** The busiest tasks, where there are many only some of each Future, and how many there are besides: `21 of a::b`. */
function shownTasks(
  sorted: readonly TaskRow[],
  nameOf: (row: TaskRow) => string,
): {
  readonly shown: readonly TaskRow[];
  readonly more: readonly string[];
} {
  if (sorted.length <= mostRows) return { shown: sorted, more: [] };
  const rows = new Map<string, number>();
  const isShown = ({ instance }: TaskRow): boolean => {
    const before = rows.get(instance) ?? 0;
    rows.set(instance, before + 1);
    return before < mostAlike;
  };
  const shown = sorted.filter(isShown).slice(0, mostRows);
  const rest = new Map<string, number>();
  const isThere = new Set(shown);
  for (const row of sorted) if (!isThere.has(row)) rest.set(nameOf(row), (rest.get(nameOf(row)) ?? 0) + 1);
  const more = [...rest].map(([future, count]) => `${count} of ${visible(future)}`);
  const named = more.slice(0, mostNamed);
  return { shown, more: more.length > named.length ? [...named, `${more.length - named.length} more Futures`] : named };
}
