import { shownPlaces } from '../../text/index.js';
import type { Arc, Node } from '../events/arcs.js';
import { insideText } from '../events/await-place.js';
import { INLINED_NOTE, LEFT_OUT_NOTE } from '../events/bounds.js';
import { type Durations, powerOf } from '../events/durations.js';
import { linesNames } from '../events/future-names.js';
import { compare } from '../events/summary.js';
import { boundText, hasRoom, type TableOptions, tableNotes, textTable, timeText } from '../events/text-table.js';
import type { ReportRow } from './report.js';
import { namesOf } from './summary-table.js';

/** What a report can be sorted by, each with the most first; `name` by the alphabet. */
export const sortKeys = ['total', 'self', 'calls', 'min', 'avg', 'p50', 'p95', 'p99', 'max', 'lost', 'name'] as const;
export type SortKey = (typeof sortKeys)[number];

const sortValue: Readonly<Record<Exclude<SortKey, 'name'>, (row: ReportRow) => number>> = {
  total: ({ total }) => total,
  self: ({ self }) => self,
  calls: ({ calls }) => calls,
  lost: ({ lost }) => lost,
  min: ({ durations }) => (durations.count === 0 ? 0 : durations.min),
  avg: ({ durations }) => averageOf(durations),
  p50: ({ durations }) => durations.percentile(0.5),
  p95: ({ durations }) => durations.percentile(0.95),
  p99: ({ durations }) => durations.percentile(0.99),
  max: ({ durations }) => durations.max,
};

/** Sorted; rows that are equal by name, then instance. */
export function sortRows(rows: readonly ReportRow[], by: SortKey): ReportRow[] {
  const byName = (a: ReportRow, b: ReportRow): number =>
    compare(a.name, b.name) || compare(a.instance ?? '', b.instance ?? '');
  if (by === 'name') return [...rows].sort(byName);
  const value = sortValue[by];
  return [...rows].sort((a, b) => value(b) - value(a) || byName(a, b));
}

type Column = Exclude<SortKey, 'name'> | 'waiting' | 'histogram';
/** From the narrowest terminal to the widest. */
const columnSets: readonly (readonly Column[])[] = [
  ['calls', 'total', 'self', 'max'],
  ['calls', 'total', 'self', 'p99', 'max'],
  ['calls', 'total', 'self', 'avg', 'p99', 'max', 'histogram'],
  ['calls', 'total', 'self', 'min', 'avg', 'p50', 'p95', 'p99', 'max', 'histogram'],
];
/** Of lives: `self` is the time in polls. */
const livesColumns: readonly (readonly Column[])[] = [
  ['calls', 'total', 'max'],
  ['calls', 'total', 'p99', 'max'],
  ['calls', 'total', 'self', 'waiting', 'p99', 'max'],
  ['calls', 'total', 'self', 'waiting', 'avg', 'p50', 'p99', 'max', 'histogram'],
];
/** Columns of text that names and places get before there are more numbers. */
const TEXT_WIDTH = 36;

/** A line a row. As many columns as the terminal has room for; `lost` if there are any. */
export function reportTable(rows: readonly ReportRow[], nameTitle: string, options: TableOptions): string {
  const scale = scaleOf(rows);
  const hasLost = rows.some(({ lost }) => lost > 0);
  const areLives = rows.some(({ waiting }) => waiting !== undefined);
  const tables = (areLives ? livesColumns : columnSets).map((set) => {
    const columns: Column[] = hasLost ? ['calls', 'lost', ...set.slice(1)] : [...set];
    const heads = columns.map((column) =>
      column === 'histogram' ? scale.title : areLives ? livesHead(column) : column,
    );
    return { heads, lines: rows.map((row) => ({ numbers: columns.map((column) => cell(row, column, scale)), row })) };
  });
  const fitting = tables.findLast(({ heads, lines }) => hasRoom(heads, lines, options, TEXT_WIDTH)) ?? tables[0];
  const shown = fitting?.lines ?? [];
  // Instances of one generic function or Future differ in their arguments.
  const named = ({ name: future, instance = future }: ReportRow) => ({ future, instance });
  const nameOf = linesNames(shown.map(({ row }) => named(row)));
  const lines = shown.map(({ numbers, row }) => {
    const { file = null, line = null, inside } = row;
    return { numbers, name: shownPlaces(nameOf(named(row))), file, line, inside };
  });
  const table = textTable(fitting?.heads ?? [], nameTitle, lines, options);
  const notes = [
    rows.some(({ bound }) => bound === 'left-out') && LEFT_OUT_NOTE,
    rows.some(({ bound }) => bound === 'inlined') && INLINED_NOTE,
  ];
  return `${table}${tableNotes(notes, options)}`;
}

const placeColumns = ['calls', 'total', 'max'] as const;

/**
 * Of each row that has a line, that and what it took, as compilers print what they find (GNU Coding Standards, 4.4):
 * editors go there. `what`: what the row is of.
 */
export function placeLines(rows: readonly ReportRow[], what: string): string[] {
  const scale = scaleOf([]);
  return rows.flatMap((row) => {
    const { name, file, line } = row;
    if (file === undefined || line === undefined) return [];
    const numbers = placeColumns.map((column) => `${column} ${cell(row, column, scale)}`).join(', ');
    return [`${file}:${line}: ${what} ${name}${insideText({ inside: row.inside })}: ${numbers}`];
  });
}

function livesHead(column: Column): string {
  return column === 'self' ? 'busy' : column;
}

function cell(row: ReportRow, column: Column, scale: Scale): string {
  if (column === 'histogram') return histogramBar(row.durations, scale);
  const value = column === 'waiting' ? (row.waiting ?? 0) : sortValue[column](row);
  if (column === 'calls') return `${row.bound ? '>=' : ''}${value}`;
  if (column === 'lost') return String(value);
  const isUntimed = row.durations.count === 0 && (column !== 'self' || row.waiting !== undefined || row.self === 0);
  return isUntimed ? '-' : timeOf(row, column === 'waiting' ? 'self' : column, Math.round(value));
}

/** An upper bound is a tick of the clock at least. */
function timeOf({ timesAtMost, zeroAtMost, durations, total }: ReportRow, column: SortKey, nanos: number): string {
  const isSum = column === 'total' || column === 'self';
  if (nanos === 0 && durations.count > 0 && timesAtMost === undefined && !(isSum && total > 0)) {
    return boundText(zeroAtMost * (isSum ? durations.count : 1), true);
  }
  return timesAtMost === undefined ? timeText(nanos) : boundText(Math.max(nanos, timesAtMost), true);
}

/** The powers of two that a table's histograms span: one scale for all rows, so that they compare. */
interface Scale {
  readonly first: number;
  /** Powers a bar. */
  readonly step: number;
  readonly bars: number;
  readonly title: string;
}

const MOST_BARS = 12;

function scaleOf(rows: readonly ReportRow[]): Scale {
  const timed = rows.filter(({ durations }) => durations.count > 0);
  const first = timed.reduce(
    (least, { durations }) => Math.min(least, powerOf(durations.min)),
    Number.POSITIVE_INFINITY,
  );
  const last = timed.reduce((most, { durations }) => Math.max(most, powerOf(durations.max)), 0);
  if (timed.length === 0) return { first: 0, step: 1, bars: 0, title: 'times' };
  const step = Math.ceil((last - first + 1) / MOST_BARS);
  const bars = Math.ceil((last - first + 1) / step);
  const text = (power: number): string => timeText(power === 0 ? 0 : 2 ** (power - 1)).replace(/(\.\d)? /, '');
  return { first, step, bars, title: `${text(first)}..${text(first + bars * step)}` };
}

const HEIGHTS = '▁▂▃▄▅▆▇█';

/** A bar a range of powers of two, its height the share of the calls; a blank where there is none. */
function histogramBar(durations: Durations, { first, step, bars }: Scale): string {
  const powers = durations.powers();
  const counts = Array.from({ length: bars }, (_, bar) => {
    let count = 0;
    for (let i = 0; i < step; i++) count += powers[first + bar * step + i] ?? 0;
    return count;
  });
  const most = Math.max(1, ...counts);
  return counts.map((count) => (count === 0 ? ' ' : HEIGHTS[Math.ceil((count / most) * HEIGHTS.length) - 1])).join('');
}

export function rowJson(row: ReportRow): object {
  const { name, instance, address, file, line, calls, lost, durations } = row;
  return {
    name,
    instance,
    address,
    file: file ?? null,
    line: line ?? null,
    inside: row.inside,
    calls,
    at_least: row.bound !== undefined,
    times_at_most: row.timesAtMost === undefined ? undefined : true,
    ...(durations.count > 0 && durations.min === 0 ? { zero_at_most_ns: row.zeroAtMost } : {}),
    lost,
    total_ns: Math.max(row.total, row.timesAtMost ?? 0),
    self_ns: Math.max(row.self, row.timesAtMost ?? 0),
    waiting_ns: row.waiting,
    ...durationsJson(durations),
    ...(row.process && { process: row.process.number, first_ns: row.process.first, last_ns: row.process.last }),
  };
}

function durationsJson(durations: Durations): object {
  const { count, min, max } = durations;
  return {
    min_ns: count === 0 ? 0 : min,
    avg_ns: Math.round(averageOf(durations)),
    p50_ns: durations.percentile(0.5),
    p95_ns: durations.percentile(0.95),
    p99_ns: durations.percentile(0.99),
    max_ns: max,
    histogram: durations.powers().flatMap((calls, power) => {
      if (calls === 0) return [];
      return [{ from: power === 0 ? 0 : 2 ** (power - 1), below: 2 ** power, calls }];
    }),
  };
}

function averageOf({ sum, count }: Durations): number {
  return count === 0 ? 0 : sum / count;
}

/** Arcs into one function, or out of it; `end` is the other side. Sorted, the most time first. */
export function arcTable(arcs: readonly Arc[], end: 'caller' | 'callee', options: TableOptions): string {
  const names = namesOf(arcs.flatMap((arc) => arc[end] ?? []));
  const lines = sortArcs(arcs).map((arc) => ({
    numbers: [
      String(arc.calls),
      ...(arc.durations.count === 0
        ? ['-', '-', '-']
        : [arc.total, averageOf(arc.durations), arc.durations.max].map((nanos) => timeText(Math.round(nanos)))),
    ],
    name: names.get(arc[end]) ?? nameOf(undefined),
    file: arc[end]?.file ?? null,
    line: arc[end]?.line ?? null,
  }));
  return textTable(['calls', 'total', 'avg', 'max'], end, lines, options);
}

export function arcJson(arc: Arc): object {
  const { caller, callee, calls, total, durations } = arc;
  return {
    caller: caller?.name ?? null,
    caller_instance: caller?.instance ?? null,
    callee: callee.name,
    callee_instance: callee.instance,
    calls,
    total_ns: total,
    ...durationsJson(durations),
  };
}

export function sortArcs(arcs: readonly Arc[]): Arc[] {
  const text = ({ caller, callee }: Arc): string => `${nameOf(caller)} ${callee.name}`;
  return [...arcs].sort((a, b) => b.total - a.total || b.calls - a.calls || compare(text(a), text(b)));
}

function nameOf(node: Node | undefined): string {
  return node?.name ?? '(nothing traced)';
}
