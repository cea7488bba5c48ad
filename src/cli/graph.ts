import { jsonLine, textLines } from '../base/visible.js';
import { compileGlob } from '../probes/index.js';
import { CallTree, onlyNamed, placeText, type TreeNode, timeText, totals } from '../trace/index.js';
import { ExitCode } from './failure.js';
import { headJson, noMatch, readSaved } from './saved-trace.js';
import type { GraphArguments } from './saved-trace-options.js';

/** `rsptrace graph TRACE [FN]`: all calls merged by their stacks, as a tree. Gives the exit status. */
export async function graph(args: GraphArguments): Promise<number> {
  const tree = new CallTree();
  const names = new Set<string>();
  const { fn } = args;
  const matches = fn === undefined ? undefined : compileGlob(fn);
  const collecting = (name: string): boolean => {
    names.add(name);
    return matches?.(name) ?? true;
  };
  const read = await readSaved(args.trace, matches ? onlyNamed(tree, collecting) : tree, args);
  if (fn !== undefined && tree.root.children.size === 0) throw noMatch('FN', fn, [...names]);
  const times = totals(tree);
  if (args.json)
    process.stdout.write(jsonLine({ ...headJson(args.trace, read), graph: childrenJson(tree.root, times) }));
  else process.stdout.write(textLines([...lines(tree, times, args.depth ?? Number.POSITIVE_INFINITY)]));
  return ExitCode.recorded;
}

type Times = ReadonlyMap<TreeNode, number>;

/** With the most time first. */
function sorted(node: TreeNode, times: Times): TreeNode[] {
  return [...node.children.values()].sort((a, b) => (times.get(b) ?? 0) - (times.get(a) ?? 0) || b.calls - a.calls);
}

/** In the manner of `uftrace graph`: a branch where a function calls several, a straight line where it calls one. */
function* lines(tree: CallTree, times: Times, deepest: number): Generator<string> {
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
    const children = sorted(node, times);
    const isBranch = children.length > 1;
    for (const [i, child] of children.entries()) {
      waiting.splice(waiting.length - i, 0, {
        node: child,
        indent,
        isBranch,
        isLast: i === children.length - 1,
        depth,
      });
    }
  };
  put(tree.root, ' ', 1);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, indent, isBranch, isLast, depth } = next;
    const total = timeText(times.get(node) ?? 0).padStart(11);
    const mark = isBranch ? '+-' : '';
    yield `${total}${timeText(node.self).padStart(11)}  ${indent}${mark}(${node.calls}) ${node.frame?.name ?? ''}`;
    if (depth >= deepest) continue;
    put(node, `${indent}${isBranch ? (isLast ? '  ' : '| ') : ''} `, depth + 1);
  }
}

function childrenJson(node: TreeNode, times: Times): object[] {
  return sorted(node, times).map((child) => ({
    name: child.frame?.name,
    place: child.frame && (placeText(child.frame) ?? null),
    calls: child.calls,
    total_ns: times.get(child) ?? 0,
    self_ns: child.self,
    calls_to: childrenJson(child, times),
  }));
}
