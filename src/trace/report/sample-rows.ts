import { madeOnce } from '../../base/made-once.js';
import { isLibraryFile } from '../../text/index.js';
import type { CallTree, TreeNode } from '../events/call-tree.js';
import { type TableOptions, textTable } from '../events/text-table.js';

export interface SampleRow {
  readonly name: string;
  readonly file: string | undefined;
  /** Samples taken in it, and in it or in what it called; recursion counts once. */
  self: number;
  total: number;
}

/**
 * `self`: the one with the most samples of its own first, then, of those without one, the program's own before
 * libraries'; `total`: with what it calls.
 */
export const sampleSortKeys = ['self', 'total', 'name'] as const;
export type SampleSortKey = (typeof sampleSortKeys)[number];

export function sampleRows(tree: Pick<CallTree, 'nodes'>, sort: SampleSortKey = 'self'): SampleRow[] {
  const rows = new Map<string, SampleRow>();
  for (const node of tree.nodes()) {
    if (node.samples === 0) continue;
    const counted = new Set<SampleRow>();
    for (let at: TreeNode | undefined = node; at?.frame; at = at.parent) {
      const { name, file } = at.frame;
      const row = madeOnce(rows, name, () => ({ name, file, self: 0, total: 0 }));
      if (at === node) row.self += node.samples;
      if (!counted.has(row)) row.total += node.samples;
      counted.add(row);
    }
  }
  return [...rows.values()].sort((a, b) => orders[sort](a, b) || (a.name < b.name ? -1 : 1));
}

const orders: Readonly<Record<SampleSortKey, (a: SampleRow, b: SampleRow) => number>> = {
  self: (a, b) => b.self - a.self || (a.self === 0 ? isLibrary(a) - isLibrary(b) : 0) || b.total - a.total,
  total: (a, b) => b.total - a.total || b.self - a.self,
  name: () => 0,
};

/** 1 for a function of a library, or of no known file. Those of the C library are `./csu/..` and `../sysdeps/..`. */
function isLibrary({ file }: SampleRow): number {
  return file === undefined || file.startsWith('.') || isLibraryFile(file) ? 1 : 0;
}

/** A line a function: its share of all samples, and that of what it calls. */
export function sampleTable(rows: readonly SampleRow[], samples: number, options: TableOptions): string {
  const share = (count: number): string => `${((100 * count) / Math.max(1, samples)).toFixed(1)}%`;
  const lines = rows.map(({ name, file, self, total }) => ({
    numbers: [share(self), share(total), String(self)],
    name,
    file: file ?? null,
    line: null,
  }));
  return textTable(['self', 'total', 'samples'], 'function', lines, { ...options, places: 'file' });
}
