import type { ReportRow } from './report.js';

/** One name in two traces. Rows of one name (instances of a generic function) are added up. */
export interface DiffRow {
  readonly name: string;
  readonly before: Totals | undefined;
  readonly after: Totals | undefined;
  /** Undefined for what is new, gone, or took no time before. */
  readonly percent: number | undefined;
}

interface Totals {
  readonly calls: number;
  readonly total: number;
  readonly self: number;
}

export type Change = 'slower' | 'faster' | 'same' | 'new' | 'gone';

export function changeOf({ before, after }: DiffRow): Change {
  if (before === undefined) return 'new';
  if (after === undefined) return 'gone';
  return after.total > before.total ? 'slower' : after.total < before.total ? 'faster' : 'same';
}

/** Compares by name, the largest difference of total time first. */
export function diffRows(before: readonly ReportRow[], after: readonly ReportRow[]): DiffRow[] {
  const [one, other] = [byName(before), byName(after)];
  const rows = [...new Set([...one.keys(), ...other.keys()])].map((name): DiffRow => {
    const [was, is] = [one.get(name), other.get(name)];
    const percent = was && is && was.total > 0 ? (100 * (is.total - was.total)) / was.total : undefined;
    return { name, before: was, after: is, percent };
  });
  return rows.sort((a, b) => Math.abs(deltaOf(b)) - Math.abs(deltaOf(a)) || (a.name < b.name ? -1 : 1));
}

/** Nanoseconds of total time: more is slower. */
export function deltaOf({ before, after }: DiffRow): number {
  return (after?.total ?? 0) - (before?.total ?? 0);
}

function byName(rows: readonly ReportRow[]): Map<string, Totals> {
  const found = new Map<string, Totals>();
  for (const { name, calls, total, self } of rows) {
    const known = found.get(name);
    found.set(
      name,
      known
        ? { calls: known.calls + calls, total: known.total + total, self: known.self + self }
        : { calls, total, self },
    );
  }
  return found;
}
