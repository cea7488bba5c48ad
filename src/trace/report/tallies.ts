import { hex } from '../../base/addr.js';
import { type ColumnsOptions, textTable as columnsTable, plural, sharedBy, textLines } from '../../text/index.js';
import { LEFT_OUT_NOTE, namesBound } from '../events/bounds.js';
import type { FunctionRef, ProbeFact, RootRef } from '../events/events.js';
import { compare } from '../events/summary.js';
import { boundText, type TableOptions, tableNotes, textTable, timeWithError } from '../events/text-table.js';
import type { ThreadRow } from '../events/thread-summary.js';

/** A function whose calls were only counted. */
export interface TallyRow {
  readonly function: FunctionRef;
  readonly calls: number;
  /**
   * The numbers are of some of the calls only. The probe was switched off on the way, or records may be lost. Or calls
   * have not returned, or had a number that could not be read.
   */
  readonly isBound?: boolean;
  /** By the size of an argument: below 0, 0, 1, 2-3, 4-7, ...; undefined if they were counted together. */
  readonly by: CountedBy | undefined;
  /** Whose calls these are, where they were counted apart; `root` is undefined for calls outside of all known tasks. */
  readonly group?: TallyGroup | undefined;
}

type TallyGroup =
  | { readonly by: 'task'; readonly root: RootRef | undefined }
  | { readonly by: 'hart'; readonly hart: number; readonly label?: string | undefined };

interface CountedBy {
  readonly argument: string;
  readonly counts: readonly number[];
  /** The numbers were added up, and not counted by their size. */
  readonly added?: { readonly as: 'sum' | 'avg'; readonly sum: bigint } | undefined;
}

/** The rows of a recording; those of probes that were switched off, or may have lost records, say so. */
export function boundTallies(
  rows: readonly TallyRow[],
  probes: readonly ProbeFact[],
  lost: Parameters<typeof namesBound>[1],
): readonly TallyRow[] {
  const leftOut = namesBound(probes, lost);
  const isBound = ({ name, instance }: FunctionRef): boolean => leftOut.has(name) || leftOut.has(instance);
  return rows.map((row) => (isBound(row.function) ? { ...row, isBound: true } : row));
}

/**
 * For the user: one line per function that was called, the one with the most calls first, each line ended by a
 * newline.
 */
export function countTable(rows: readonly TallyRow[], options: TableOptions): string {
  const counted = rows.filter(({ by }) => by === undefined);
  const called = counted.filter(({ calls, isBound }) => calls > 0 || isBound);
  const missed = counted.length - called.length;
  const note = missed === 0 ? '' : `${missed} ${missed === 1 ? 'function was' : 'functions were'} not called\n`;
  if (called.length === 0) return note;
  const sorted = [...called].sort((a, b) => b.calls - a.calls || inOrder(a, b)).map((row) => ({ row, numbers: [] }));
  return tallyTable(['calls'], 'function', sorted, options) + note;
}

/** For the user: a line a function whose calls' numbers were added up, the largest first, or '' if there is none. */
export function addedTable(rows: readonly TallyRow[], as: 'sum' | 'avg', options: TableOptions): string {
  const added = addedRows(rows, as);
  if (added.length === 0) return '';
  const sorted = added.sort((a, b) => b.value - a.value || inOrder(a.row, b.row));
  const lines = sorted.map(({ row, argument, sum, value }) => {
    const text = as === 'sum' ? String(sum) : Number.isInteger(value) ? String(value) : value.toFixed(2);
    return { row, argument, numbers: [row.calls === 0 ? '-' : text] };
  });
  return tallyTable(['calls', as], 'function, number', lines, options);
}

interface Shown {
  readonly row: TallyRow;
  readonly argument?: string;
  /** Behind the number of calls. */
  readonly numbers: readonly string[];
}

function tallyTable(heads: readonly string[], title: string, shown: readonly Shown[], options: TableOptions): string {
  const isShared = sharedBy(shown, ({ row, argument }) => `${row.function.name}\n${argument}`, addressOf);
  const lines = shown.map((each) => {
    const { row, argument, numbers } = each;
    const { name, instance, file = null, line = null } = row.function;
    const of = `${argument === undefined ? '' : `, ${argument}`}${groupText(row.group)}`;
    const calls = `${row.isBound ? '>=' : ''}${row.calls}`;
    return { numbers: [calls, ...numbers], name: `${isShared(each) ? instance : name}${of}`, file, line };
  });
  const isNumber = shown.some(({ argument }) => argument !== undefined);
  const note = shown.some(({ row }) => row.isBound) && `${LEFT_OUT_NOTE}${isNumber ? UNCOUNTED_NOTE : ''}`;
  return textTable(heads, title, lines, options) + tableNotes([note], options);
}

const UNCOUNTED_NOTE = '; calls that have not returned, or whose number could not be read, are not among them';

function addressOf({ row }: Pick<Shown, 'row'>): bigint {
  return row.function.address;
}

/** For machines, in the order of {@link tallyJson}. `value`: the sum or the average; null without calls. */
export function addedJson(rows: readonly TallyRow[], as: 'sum' | 'avg'): object[] {
  return addedRows([...rows].sort(inOrder), as).map(({ row, argument, sum, value }) => ({
    ...placeJson(row.function),
    ...groupJson(row.group),
    argument,
    calls: row.calls,
    ...boundJson(row),
    sum: exact(sum),
    ...(as === 'avg' && { avg: row.calls === 0 ? null : value }),
  }));
}

interface AddedRow {
  readonly row: TallyRow;
  readonly argument: string;
  readonly sum: bigint;
  readonly value: number;
}

function addedRows(rows: readonly TallyRow[], as: 'sum' | 'avg'): AddedRow[] {
  return rows.flatMap((row) => {
    const { argument = '', added } = row.by ?? {};
    if (added?.as !== as) return [];
    const value = as === 'sum' || row.calls === 0 ? Number(added.sum) : Number(added.sum) / row.calls;
    return [{ row, argument, sum: added.sum, value }];
  });
}

/** A text where a double has no room for it. */
function exact(sum: bigint): number | string {
  return Number.isSafeInteger(Number(sum)) ? Number(sum) : String(sum);
}

const barWidth = 40;

/** For the user: a histogram a function. Instances that share a name have all of theirs, or else their addresses. */
export function histogramTexts(rows: readonly TallyRow[]): string[] {
  const counted = rows.filter(({ by }) => by && !by.added).map((row) => ({ row }));
  const isNameShared = sharedBy(counted, ({ row }) => row.function.name, addressOf);
  const isInstanceShared = sharedBy(counted, ({ row }) => row.function.instance, addressOf);
  return counted.map((each) => {
    const { row } = each;
    const { name, instance, address } = row.function;
    if (!isNameShared(each)) return histogramText(row, name);
    return histogramText(row, isInstanceShared(each) ? `${name} at ${hex(address)}` : instance);
  });
}

/** One bar per power of two, from the lowest to the highest one that was seen. */
function histogramText({ calls, isBound, by, group }: TallyRow, name: string): string {
  if (!by) return '';
  const first = by.counts.findIndex((count) => count > 0);
  if (first < 0) return textLines([`${name}, ${by.argument}: ${isBound ? 'at least 0 calls' : 'not called'}`]);
  const last = by.counts.findLastIndex((count) => count > 0);
  const seen = by.counts.slice(first, last + 1);
  const most = Math.max(...seen);
  const width = String(most).length;
  const bars = seen.map((count, i) => {
    const bar = '@'.repeat(Math.round((count / most) * barWidth)).padEnd(barWidth);
    return `${bucketText(first + i).padEnd(14)}  ${String(count).padStart(width)} |${bar}|\n`;
  });
  return `${textLines([`${name}, ${by.argument}${groupText(group)}: ${isBound ? 'at least ' : ''}${plural(calls, 'call')}`])}${bars.join('')}`;
}

/** For machines, sorted by function, then instance, address and argument, in code unit order. */
export function tallyJson(rows: readonly TallyRow[]): { readonly counts: object[]; readonly histograms: object[] } {
  const sorted = [...rows].sort(inOrder);
  return {
    counts: sorted.flatMap((row) =>
      row.by ? [] : [{ ...placeJson(row.function), ...groupJson(row.group), calls: row.calls, ...boundJson(row) }],
    ),
    histograms: sorted.flatMap((row) => {
      const { function: fn, calls, by, group } = row;
      if (!by || by.added) return [];
      const { argument, counts } = by;
      return [{ ...placeJson(fn), ...groupJson(group), argument, calls, ...boundJson(row), buckets: buckets(counts) }];
    }),
  };
}

/** A member where there is something to say: most rows are whole. */
function boundJson({ isBound }: TallyRow): object {
  return isBound ? { at_least: true } : {};
}

function placeJson({ name, instance, address, file, line }: FunctionRef): object {
  return { function: name, instance, address: hex(address), file: file ?? null, line: line ?? null };
}

/** `, app::worker @0x80412340`, `, hart 1`, `, (no task)`. */
function groupText(group: TallyGroup | undefined): string {
  if (group === undefined) return '';
  if (group.by === 'hart') return `, ${group.label ?? `hart ${group.hart}`}`;
  const { root } = group;
  if (root === undefined) return ', (no task)';
  const name = root.about?.name === undefined ? '' : `'${root.about.name}' `;
  return `, ${name}${root.future.future} @${hex(root.address)}`;
}

function groupJson(group: TallyGroup | undefined): object {
  if (group === undefined) return {};
  if (group.by === 'hart') return { hart: group.hart };
  const { root } = group;
  if (root === undefined) return { task: null };
  const { id = null, name = null } = root.about ?? {};
  return { task: { future: root.future.future, address: hex(root.address), id, name } };
}

function buckets(counts: readonly number[]): object[] {
  return counts.flatMap((calls, bucket) => {
    if (calls === 0) return [];
    return [{ from: bucket === 0 ? null : lowest(bucket), below: bucket === 0 ? 0 : lowest(bucket + 1), calls }];
  });
}

const lowest = (bucket: number): number => (bucket < 2 ? 0 : 2 ** (bucket - 2));

/** As bpftrace writes it: `[0]`, `[1]`, `[2, 4)`, `[1K, 2K)`. */
function bucketText(bucket: number): string {
  if (bucket === 0) return '(..., 0)';
  if (bucket < 3) return `[${bucket - 1}]`;
  return `[${powerText(bucket - 2)}, ${powerText(bucket - 1)})`;
}

const units = ['', 'K', 'M', 'G', 'T', 'P', 'E'];

function powerText(exponent: number): string {
  return `${2 ** (exponent % 10)}${units[Math.floor(exponent / 10)] ?? ''}`;
}

function inOrder(a: TallyRow, b: TallyRow): number {
  return (
    compare(a.function.name, b.function.name) ||
    compare(a.function.instance, b.function.instance) ||
    Number(a.function.address - b.function.address) ||
    compare(a.by?.argument ?? '', b.by?.argument ?? '')
  );
}

export function threadTable(rows: readonly ThreadRow[], options: ColumnsOptions): string {
  const hasLost = rows.some(({ lost }) => lost > 0);
  const cells = rows.map((row) => [
    String(row.switches),
    ...(hasLost ? [String(row.lost)] : []),
    row.times_at_most ? boundText(row.on_cpu_ns, true) : timeWithError(row.on_cpu_ns, row.total_error_ns),
    boundText(row.longest_on_cpu_ns, row.times_at_most),
    row.switches > 1 ? boundText(row.off_cpu_ns, row.times_at_most) : '-',
    row.switches > 1 ? boundText(row.longest_off_cpu_ns, row.times_at_most) : '-',
    row.harts.join(','),
    row.thread,
  ]);
  const titles = [
    'switches>',
    ...(hasLost ? ['lost>'] : []),
    'on CPU>',
    'longest on>',
    'off CPU>',
    'longest off>',
    'harts',
    'thread~',
  ];
  return columnsTable(titles, cells, options);
}
