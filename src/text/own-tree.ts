import { type CodeLink, crateOf, libraryBelow, libraryName, ownFiles } from './own-files.js';
import { branchesIn, lineOf } from './short-name.js';
import { textWidth, wrapped } from './text-width.js';

interface Awaiting<N> {
  readonly awaits: readonly N[];
}

/** What says whose code a node is. */
export interface NodeCode extends CodeLink {
  /** Where it is declared. */
  readonly declared: string | undefined;
}

export interface Shown<N> {
  readonly node: N;
  /** `, in tokio Mutex::lock`: what of a library it awaits, which is not shown; or nothing. */
  readonly inside: string;
  /** What is not shown below it, before what is. */
  readonly hidden: readonly N[];
  readonly isOwn: boolean;
  /** What is awaited by what is shown around it, with nothing left out between. */
  readonly isDirect: boolean;
  readonly awaits: readonly Shown<N>[];
}

/** All of a tree. */
export function wholeTree<N extends Awaiting<N>>(node: N): Shown<N> {
  return { node, inside: '', hidden: [], isOwn: true, isDirect: true, awaits: node.awaits.map(wholeTree<N>) };
}

/**
 * A task with the Futures of the program's own code below it: what a library awaits by itself is left out. A tree that
 * has none is whole.
 */
export function ownTree<N extends Awaiting<N>>(root: N, codeOf: (node: N) => NodeCode): Shown<N> {
  const codes = new Map<N, NodeCode>();
  const learn = (node: N): void => {
    codes.set(node, codeOf(node));
    node.awaits.forEach(learn);
  };
  learn(root);
  const isOwnFile = ownFiles([...codes.values()].flatMap(({ declared, file }) => [declared, file]));
  const crates = new Set<string | undefined>();
  for (const { name, file, declared } of codes.values())
    if ([file, declared].some(isOwnFile)) crates.add(crateOf(name));
  if (crates.size === 0) return wholeTree(root);
  const isOwn = (node: N): boolean => {
    const { name = '', file, declared } = codes.get(node) ?? {};
    return file === undefined && declared === undefined ? crates.has(crateOf(name)) : [file, declared].some(isOwnFile);
  };

  const shown = (node: N, isDirect: boolean): Shown<N> => {
    const hidden: N[] = [];
    const below = (child: N, isNext: boolean): Shown<N>[] => {
      if (isOwn(child)) return [shown(child, isNext)];
      hidden.push(child);
      return child.awaits.flatMap((each) => below(each, false));
    };
    const awaits = node.awaits.flatMap((child) => below(child, true));
    const links = hidden.map((each) => codes.get(each)).filter((code) => code !== undefined);
    const isEnd = isOwn(node) && awaits.length === 0;
    const name = isEnd ? libraryBelow(codes.get(node)?.name ?? '', links, isOwnFile) : undefined;
    return {
      node,
      inside: name === undefined ? '' : `, in ${libraryName(name)}`,
      hidden,
      isOwn: isOwn(node),
      isDirect,
      awaits,
    };
  };
  return shown(root, true);
}

/** How many nodes are left out. */
export function leftOut<N>({ hidden, awaits }: Shown<N>): number {
  return awaits.reduce((sum, each) => sum + leftOut(each), hidden.length);
}

/** What a node's line says. The name is what gives way in a narrow terminal. */
export interface NodeText {
  readonly before?: string;
  readonly name: string;
  readonly after: string;
  /** Behind that; in a line of its own where there is no room. */
  readonly facts?: string;
  /** What ends the line. */
  readonly end?: string;
  /** Lines of what it holds, as long as they are; and sentences about it. */
  readonly holds?: readonly string[];
  readonly below?: readonly string[];
}

/** A tree, a line a node and more below it, in a terminal of so many columns. */
export function treeLines<N>(root: Shown<N>, textOf: (branch: Shown<N>) => NodeText, width: number): string[] {
  const lines: string[] = [];
  const show = (branch: Shown<N>, lead: string, inner: string): void => {
    const { before = '', name, after, facts = '', end = '', holds = [], below = [] } = textOf(branch);
    const trunk = `${inner}${branch.awaits.length > 0 ? '│ ' : '  '}`;
    const begin = `${branchesIn(width, lead, lead.length / 3)}${before}`;
    const isLong = facts !== '' && textWidth(`${begin}${name}${after}${facts}${end}`) > width;
    lines.push(lineOf(begin, name, `${after}${isLong ? '' : facts}${end}`, width));
    if (isLong) lines.push(`${trunk}${facts.trim()}`);
    for (const text of holds) lines.push(`${trunk}  ${text}`);
    for (const text of below) lines.push(...wrapped(`${trunk}${text}`, width, `${trunk}  `));
    for (const [i, child] of branch.awaits.entries()) {
      const isLast = i === branch.awaits.length - 1;
      show(child, `${inner}${isLast ? '└─ ' : '├─ '}`, `${inner}${isLast ? '   ' : '│  '}`);
    }
  };
  show(root, '', '');
  return lines;
}
