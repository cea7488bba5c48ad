import type { Shown } from './own-tree.js';
import { branchesIn, lineOf } from './short-name.js';
import { textWidth, wrapped } from './text-width.js';

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
