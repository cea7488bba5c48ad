import { branchesIn, clipPlace, lineOf, textLines } from '../../text/index.js';
import { placeText } from '../../trace/index.js';
import type { Dependency, FutureGraph, FutureNode } from './graph.js';
import { type FutureNames, shortType } from './short-names.js';
import type { FutureState } from './types.js';

/** Deeper trees are cut. A Future in place is smaller than its holder, so only pointers lead this deep. */
const MAX_DEPTH = 200;

/**
 * The await dependencies as trees. Each begins at a Future that nothing else here awaits:
 *
 *     labkern::work::fib_task  40 B  /labkern/src/work.rs:142
 *     └─ awaits dyn Future<Output=u64>  Suspend0 work.rs:144
 *        └─ may be labkern::work::fib_box::{async_block#0}  48 B
 *
 * A Future whose branches are shown above is marked `(*)`, a way back to itself `(cycle)`.
 */
export function futuresTree(graph: FutureGraph, names: FutureNames, width = Number.POSITIVE_INFINITY): string {
  const lines: string[] = [];
  const shown = new Set<FutureNode>();
  const around: FutureNode[] = [];

  const visit = (node: FutureNode, indent: string): void => {
    const edges = graph.edges(node);
    shown.add(node);
    around.push(node);
    edges.forEach((edge, i) => {
      const last = i === edges.length - 1;
      const known = graph.edges(edge.target).length > 0;
      const cycle = around.includes(edge.target);
      const again = !cycle && known && shown.has(edge.target);
      const cut = cycle || again || around.length > MAX_DEPTH;
      const mark = cycle ? '  (cycle)' : cut && known ? '  (*)' : '';
      const { before, name, after } = edgeText(edge, names);
      const branches = branchesIn(width, `${indent}${last ? '└─ ' : '├─ '}`, around.length);
      lines.push(lineOf(`${branches}${before}`, name, `${after}${mark}`, width));
      if (!cut) visit(edge.target, `${indent}${last ? '   ' : '│  '}`);
    });
    around.pop();
  };

  for (const root of graph.roots()) {
    const full = placeText(root);
    const place = full && clipPlace(full, width / 3);
    lines.push(lineOf('', names.of(root), `  ${root.size} B${place === undefined ? '' : `  ${place}`}`, width));
    visit(root, '');
  }
  return textLines(lines);
}

function edgeText(edge: Dependency, names: FutureNames) {
  const { target, kind, path, count, states } = edge;
  const what = typeof target === 'string' ? shortType(target) : names.of(target);
  const verb = { awaits: 'awaits ', holds: '', 'may-be': 'may be ' }[kind];
  const where = path === '' ? '' : `${path}: `;
  const many = count > 1 ? ` x${count}` : '';
  const size = edge.pointer ? (kind === 'may-be' ? '' : '  by pointer') : `  ${edge.size} B`;
  const at = states.length === 0 ? '' : `  ${statesText(states)}`;
  return { before: `${verb}${where}`, name: what, after: `${many}${size}${at}` };
}

/**
 * `Suspend0 work.rs:76`, `Suspend0,1 work.rs:48,50`: files by their last part, because the tree's roots have them in
 * full.
 */
export function statesText(states: readonly FutureState[]): string {
  const suspended = states.every((state) => /^Suspend\d+$/.test(state.name));
  const names = suspended
    ? `Suspend${states.map((s) => s.name.slice(7)).join(',')}`
    : states.map((s) => s.name).join(',');
  const file = states[0]?.file;
  if (file === undefined || states.some((state) => state.file !== file)) return names;
  const lines = [...new Set(states.map((state) => state.line))].filter((line) => line !== undefined);
  return `${names} ${file.slice(file.lastIndexOf('/') + 1)}${lines.length > 0 ? `:${lines.join(',')}` : ''}`;
}
