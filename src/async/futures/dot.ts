// Graphviz's DOT language (https://graphviz.org/doc/info/lang.html): one digraph, IDs `n0`, `n1`, ..., all text in
// quoted strings.

import { messageOf, partMissing, RsptraceError } from '../../base/errors.js';
import { visible } from '../../text/index.js';
import { placeText } from '../../trace/index.js';
import type { Dependency, FutureGraph, FutureNode } from './graph.js';
import { type FutureNames, isPointer, shortType } from './short-names.js';
import { statesText } from './tree.js';

/**
 * The await dependencies as a graph. Each Future is a box with its size and place: rounded if it is written by hand,
 * dashed if all its polls were inlined. Arrows: solid awaits, dashed holds, dotted "may be" (a `dyn Future`, drawn as
 * an ellipse).
 */
export function futuresDot(graph: FutureGraph, names: FutureNames): string {
  const ids = new Map<FutureNode, string>();
  const targets = new Set(graph.nodes.flatMap((node) => graph.edges(node).map((edge) => edge.target)));
  for (const node of graph.nodes) {
    if (typeof node !== 'string' && isPointer(node) && !targets.has(node)) continue;
    ids.set(node, `n${ids.size}`);
  }
  const lines = [
    'digraph futures {',
    '  rankdir=LR;',
    '  node [shape=box, fontname="sans-serif", fontsize=11];',
    '  edge [fontname="sans-serif", fontsize=9];',
  ];
  for (const [node, id] of ids) lines.push(`  ${id} [${nodeAttributes(node, names)}];`);
  for (const [node, id] of ids) {
    for (const edge of graph.edges(node)) {
      const to = ids.get(edge.target);
      if (to !== undefined) lines.push(`  ${id} -> ${to} [${edgeAttributes(edge)}];`);
    }
  }
  lines.push('}');
  return `${lines.join('\n')}\n`;
}

function nodeAttributes(node: FutureNode, names: FutureNames): string {
  if (typeof node === 'string') return `label=${quoted([shortType(node)])}, tooltip=${quoted([node])}, shape=ellipse`;
  const place = placeText(node);
  const base = place?.slice(place.lastIndexOf('/') + 1);
  const label = [names.short(node), base === undefined ? `${node.size} B` : `${node.size} B  ${base}`];
  const styles = [node.kind === 'impl' ? 'rounded' : '', node.polls.length === 0 ? 'dashed' : ''].filter(Boolean);
  const style = styles.length > 0 ? `, style=${quoted([styles.join(',')])}` : '';
  return `label=${quoted(label)}, tooltip=${quoted([node.instance])}${style}`;
}

function edgeAttributes({ kind, states, path, count }: Dependency): string {
  const label = [path + (count > 1 ? ` x${count}` : ''), states.length === 0 ? '' : statesText(states)].filter(Boolean);
  const style = { awaits: 'solid', holds: 'dashed', 'may-be': 'dotted' }[kind];
  return `style=${style}${label.length > 0 ? `, label=${quoted(label)}` : ''}`;
}

/**
 * A quoted string: only `"` needs a backslash, and a backslash itself is one in labels; lines are centred with `\n`.
 */
function quoted(lines: readonly string[]): string {
  return `"${lines.map((line) => visible(line).replace(/[\\"]/g, '\\$&')).join('\\n')}"`;
}

/** Graphviz lays this many out in 5 seconds; the time grows faster than their square. */
const MAX_NODES = 1000;

/**
 * Draws a graph in the DOT language as SVG, by Graphviz in WebAssembly. It is loaded only here, because it is large.
 *
 * @throws RsptraceError `SVG_FAILED`, `PART_MISSING`
 */
export async function graphSvg(dot: string, nodes: number): Promise<string> {
  if (nodes > MAX_NODES) {
    throw new RsptraceError('SVG_FAILED', `a graph of ${nodes} Futures is too large to draw`, {
      hint: 'name some of them with a GLOB, or take --dot and draw it with a program of your choice',
    });
  }
  const { instance } = await import('@viz-js/viz').catch((cause: unknown) => {
    throw partMissing('@viz-js/viz', 'the graph cannot be drawn here, but --dot writes it', cause);
  });
  try {
    return (await instance()).renderString(dot, { format: 'svg', engine: 'dot' });
  } catch (error) {
    throw new RsptraceError('SVG_FAILED', `the graph cannot be drawn: ${messageOf(error)}`, {
      hint: 'take --dot and draw it with another Graphviz',
      cause: error,
    });
  }
}
