// Who waits for whom: `rsptrace tasks --blocked`, and which waits of a task are shown.
import type { FoundTasks } from '../api/index.js';
import {
  type AwaitNode,
  KINDS,
  ownFuture,
  placeOfWait,
  type Task,
  targetOf,
  taskName,
  type Wait,
  waitText,
} from '../async/tasks/index.js';
import type { CodePlace } from '../target/stacks/index.js';
import { type Shown as Branch, type NodeCode, ownTree, shownPlace, wholeTree } from '../text/index.js';
import { alike, waitersText } from './tasks-alike.js';

/** What is shown of the tree of a task. */
export function branchOf(task: AwaitNode, isFull = false): Branch<AwaitNode> {
  return isFull ? wholeTree(task) : ownTree(targetOf(task), codeOf);
}

function codeOf({ future, typeName, state }: AwaitNode): NodeCode {
  return { name: future?.future ?? typeName, file: state?.file, declared: future?.file };
}

/** The Futures whose waits a branch shows: its own, and what of libraries it awaits. */
export function leavesOf({ node, hidden, isOwn }: Branch<AwaitNode>): readonly AwaitNode[] {
  return isOwn ? [node, ...hidden] : [node];
}

/** Those of the program's own code; of a task that has none, all. */
function waitsShown(task: Task, all: readonly Wait<Task>[], isFull: boolean | undefined): readonly Wait<Task>[] {
  const leaves = (branch: Branch<AwaitNode>): AwaitNode[] => [...leavesOf(branch), ...branch.awaits.flatMap(leaves)];
  const known = new Set(leaves(branchOf(task, isFull)));
  const own = all.filter(({ node }) => known.has(node));
  return own.length === 0 ? all : own;
}

/**
 * A line for each wait that another task can end, with all tasks that wait so at one place. Waits of those that could
 * end one have a line too. Then come the others, by what they wait for. `left`: waits that are not shown, because a
 * library waits by itself, while the task's own code waits for more.
 */
export function blockedLines(
  { tasks, blocking, waits, blockedIn }: FoundTasks,
  isFull?: boolean,
): { readonly lines: string[]; readonly left: number } {
  const lines: string[] = [];
  const waiters: { readonly task: Task; readonly place: string | undefined; readonly text: string }[] = [];
  const shown = new Map([...waits].map(([task, all]) => [task, waitsShown(task, all, isFull)] as const));
  const enders = new Set([...shown.values()].flat().flatMap((wait) => wait.enders.map(({ task }) => task)));
  const others = new Map<string, number>();
  const count = (what: string): void => void others.set(what, (others.get(what) ?? 0) + 1);
  let left = 0;
  for (const task of [...tasks, ...blocking]) {
    const all = shown.get(task) ?? [];
    const thread = blockedIn(task);
    if (thread) {
      lines.push(`${taskName(task)} ${threadText(thread)}`);
      continue;
    }
    left += (waits.get(task)?.length ?? 0) - all.length;
    for (const wait of all) {
      if (wait.how === undefined && !enders.has(task)) count(KINDS[wait.kind] ?? wait.kind);
      else waiters.push({ task, place: placeOfWait(task, wait), text: waitText(wait) });
    }
    if (all.length === 0) count('something else');
  }
  const groups = alike(waiters, ({ task, place, text }) => [task.facts.name, ownFuture(task), place, text].join('\n'));
  lines.push(...groups.map((group) => waitersText(group, group.shown.place, group.shown.text)));
  const rest = [...others].map(([what, number]) => `${number} for ${what}`);
  return { lines: rest.length === 0 ? lines : [...lines, `others wait: ${rest.join(', ')}`], left };
}

/** `blocks its thread in std::sync::Mutex::lock at src/main.rs:40`. */
export function threadText({ inside, own }: CodePlace): string {
  const at = own?.file === undefined ? '' : ` at ${shownPlace(own.file, own.line)}`;
  return `blocks its thread${inside === undefined ? '' : ` in ${inside}`}${at}`;
}
