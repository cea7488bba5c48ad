import { linesNames, type Named } from '../events/future-names.js';
import type { ReportRow } from './report.js';

/**
 * One name in two traces. Rows of one name (instances of a generic function) are added up. Instances of a Future have
 * their generic arguments in their names, if one of the traces has several.
 */
export interface DiffRow {
  readonly name: string;
  /** Without the generic arguments. */
  readonly plain: string;
  readonly before: Totals | undefined;
  readonly after: Totals | undefined;
  /** Undefined for what is new, gone, or took no time before. */
  readonly percent: number | undefined;
}

/** Nanoseconds: sums, or of a single one. */
interface Totals {
  readonly calls: number;
  readonly total: number;
  readonly self: number;
  /** Of `calls`, those without an end in the trace: they have no time. */
  readonly unended: number;
}

export type Change = 'slower' | 'faster' | 'same' | 'new' | 'gone';

export function changeOf({ before, after }: DiffRow): Change {
  if (before === undefined) return 'new';
  if (after === undefined) return 'gone';
  return after.total > before.total ? 'slower' : after.total < before.total ? 'faster' : 'same';
}

type NameOf = (row: ReportRow) => string;

/** By what Futures of two traces are the same. */
export function instancesOf(before: readonly ReportRow[], after: readonly ReportRow[]): NameOf {
  const named = ({ name: future, instance = future }: ReportRow): Named => ({ future, instance });
  const [one, other] = [before, after].map((rows) => linesNames(rows.map(named)));
  return (row) => {
    const names = [one?.(named(row)), other?.(named(row))].filter((name) => name !== undefined);
    return names.find((name) => name !== row.name) ?? row.name;
  };
}

/**
 * Compares by name, the largest difference of total time first. `isMean`: of a single one instead, because how many
 * requests there were says nothing of how long one took.
 */
export function diffRows(
  before: readonly ReportRow[],
  after: readonly ReportRow[],
  { nameOf, isMean = false }: { readonly nameOf: NameOf; readonly isMean?: boolean },
): DiffRow[] {
  const plain = new Map([...before, ...after].map((row) => [nameOf(row), row.name]));
  const [one, other] = [before, after].map((rows) => byName(rows, nameOf, isMean)) as [TotalsByName, TotalsByName];
  const rows = [...new Set([...one.keys(), ...other.keys()])].map((name): DiffRow => {
    const [was, is] = [one.get(name), other.get(name)];
    const percent = was && is && was.total > 0 ? (100 * (is.total - was.total)) / was.total : undefined;
    return { name, plain: plain.get(name) ?? name, before: was, after: is, percent };
  });
  return rows.sort((a, b) => Math.abs(deltaOf(b)) - Math.abs(deltaOf(a)) || (a.name < b.name ? -1 : 1));
}

/** Nanoseconds of total time: more is slower. */
export function deltaOf({ before, after }: DiffRow): number {
  return (after?.total ?? 0) - (before?.total ?? 0);
}

type TotalsByName = ReadonlyMap<string, Totals>;

function byName(rows: readonly ReportRow[], nameOf: NameOf, isMean: boolean): TotalsByName {
  const found = new Map<string, Totals>();
  for (const row of rows) {
    const { durations, total, self } = row;
    // What has no end in the trace has no time.
    const calls = isMean ? durations.count : row.calls;
    const name = nameOf(row);
    const known = found.get(name) ?? { calls: 0, total: 0, self: 0, unended: 0 };
    found.set(name, {
      calls: known.calls + calls,
      total: known.total + total,
      self: known.self + self,
      unended: known.unended + calls - durations.count,
    });
  }
  if (!isMean) return found;
  const ended = [...found].filter(([, { calls }]) => calls > 0);
  return new Map(
    ended.map(([name, all]) => [name, { ...all, total: all.total / all.calls, self: all.self / all.calls }]),
  );
}
