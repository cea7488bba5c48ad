import { compileGlob } from '../probes/index.js';
import { branchesIn, jsonLine, lineOf, textLines } from '../text/index.js';
import { CallTree, chosenByName, Inside, namesOf, placeText, type TreeNode, timeText, totals } from '../trace/index.js';
import { ExitCode, note } from './failure.js';
import type { GraphArguments, GraphSortKey, SavedTraceArguments } from './options/saved-trace.js';
import { chosenInto, headJson, noMatch, readChosen } from './saved-trace.js';
import { LargePieces, lineWidth } from './terminal.js';

/** `rsptrace graph TRACE [FN]`: all calls merged by their stacks, as a tree. Gives the exit status. */
export async function graph(args: GraphArguments & SavedTraceArguments): Promise<number> {
  const tree = new CallTree();
  const names = new Set<string>();
  const { function: fn } = args;
  const matches = fn === undefined ? undefined : compileGlob(fn);
  const collecting = (name: string): boolean => {
    names.add(name);
    return matches?.(name) ?? true;
  };
  const begun = matches
    ? new Inside(tree, chosenByName({ kind: undefined, matches: collecting, holds: undefined }))
    : tree;
  const read = await readChosen(args.trace, chosenInto(begun), args);
  if (fn !== undefined && tree.root.children.size === 0) throw noMatch('FN', fn, [...names]);
  const shown: Shown = { times: totals(tree), sort: args.sort, top: args.top };
  if (args.json) printJson(headJson(args.trace, read), { tree, shown, depth: args.depth });
  else print(lines(tree, shown, args.depth ?? Number.POSITIVE_INFINITY));
  return ExitCode.recorded;
}

/** In pieces, because a tree may have hundreds of thousands of lines. */
function print(all: Iterable<string>): void {
  const out = new LargePieces();
  for (const line of all) out.write(textLines([line]));
  out.flush();
}

/** What readers of JSON nest: two levels a call. */
const DEEPEST_JSON = 1000;

function printJson(
  head: object,
  { tree, shown, depth = Number.POSITIVE_INFINITY }: { tree: CallTree; shown: Shown; depth: number | undefined },
): void {
  const deepest = Math.min(depth, DEEPEST_JSON);
  const graph = childrenJson(tree.root, shown, deepest);
  const isCut = depth > deepest && isDeeper(tree, deepest);
  process.stdout.write(jsonLine({ ...head, cut_at_depth: isCut ? deepest : null, graph }));
  if (!isCut) return;
  note(`calls nested deeper than ${deepest} are left out of the JSON; without --json all are shown`);
}

/** Whether calls are nested deeper than that. */
function isDeeper(tree: CallTree, limit: number): boolean {
  const depths = new Map<TreeNode, number>();
  for (const node of tree.nodes()) {
    const depth = 1 + (node.parent === undefined ? 0 : (depths.get(node.parent) ?? 0));
    if (depth > limit) return true;
    depths.set(node, depth);
  }
  return false;
}

interface Shown {
  readonly times: ReadonlyMap<TreeNode, number>;
  readonly sort: GraphSortKey;
  /** Of the callees of each. */
  readonly top: number | undefined;
}

function sorted(node: TreeNode, { times, sort, top }: Shown): TreeNode[] {
  const total = (each: TreeNode): number => times.get(each) ?? 0;
  const name = (each: TreeNode): string => each.frame?.name ?? '';
  const value = { total, self: (each: TreeNode) => each.self, calls: (each: TreeNode) => each.calls, name: () => 0 };
  const by = value[sort];
  const children = [...node.children.values()];
  return children
    .sort((a, b) => by(b) - by(a) || (sort === 'name' ? 0 : total(b) - total(a)) || (name(a) < name(b) ? -1 : 1))
    .slice(0, top);
}

/** In the manner of `uftrace graph`: a branch where a function calls several, a straight line where it calls one. */
function* lines(tree: CallTree, shown: Shown, deepest: number): Generator<string> {
  const { times } = shown;
  const width = lineWidth();
  const names = namesOf([...tree.nodes()].flatMap(({ frame }) => frame ?? []));
  const all = [...tree.root.children.values()].reduce((sum, node) => sum + (times.get(node) ?? 0), 0);
  yield `${'# TOTAL'.padStart(11)}${'SELF'.padStart(11)}  FUNCTION`;
  yield `${timeText(all).padStart(11)}${''.padStart(11)}  ${tree.info?.program ?? ''}`;
  interface Waiting {
    readonly node: TreeNode;
    readonly indent: string;
    readonly isBranch: boolean;
    readonly isLast: boolean;
    readonly depth: number;
  }
  const waiting: Waiting[] = [];
  const put = (node: TreeNode, indent: string, depth: number): void => {
    const children = sorted(node, shown);
    const isBranch = children.length > 1;
    for (const node of children.toReversed())
      waiting.push({ node, indent, isBranch, isLast: node === children.at(-1), depth });
  };
  put(tree.root, ' ', 1);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, indent, isBranch, isLast, depth } = next;
    const total = timeText(times.get(node) ?? 0).padStart(11);
    const mark = isBranch ? '+-' : '';
    const branches = branchesIn(width, `${indent}${mark}`, depth);
    const before = `${total}${timeText(node.self).padStart(11)}  ${branches}(${node.calls}) `;
    yield lineOf(before, names.get(node.frame) ?? '', '', width);
    if (depth >= deepest) continue;
    put(node, `${indent}${isBranch ? (isLast ? '  ' : '| ') : ''} `, depth + 1);
  }
}

/** `deepest`: so many levels below the node. */
function childrenJson(node: TreeNode, shown: Shown, deepest: number): object[] {
  if (deepest <= 0) return [];
  return sorted(node, shown).map((child) => ({
    name: child.frame?.name,
    instance: child.frame?.instance,
    place: child.frame && (placeText(child.frame) ?? null),
    calls: child.calls,
    total_ns: shown.times.get(child) ?? 0,
    self_ns: child.self,
    calls_to: childrenJson(child, shown, deepest - 1),
  }));
}
