import type { FoundTasks, WantedLock } from '../api/index.js';
import {
  type AwaitNode,
  BLOCK_ON,
  calledNode,
  type Deadlock,
  type Fate,
  type FutureFields,
  type FutureLocal,
  ITSELF,
  placeOfWait,
  REACHABLE,
  type Task,
  taskName,
  type Wait,
  waitText,
  whatText,
} from '../async/tasks/index.js';
import { hex } from '../base/addr.js';
import type { CodePlace } from '../target/stacks/index.js';
import {
  type Shown as Branch,
  clipPlace,
  leftOut,
  libraryName,
  macroOf,
  type NodeText,
  plural,
  shownFile,
  shownPlace,
  textLines,
  treeLines,
  wrapped,
} from '../text/index.js';
import { formatValue, valueJson } from '../values/index.js';
import { wantedJson, wantedLines } from './locks-wanted.js';
import { alike, othersLines } from './tasks-alike.js';
import { blockedLines, branchOf, leavesOf, threadText } from './tasks-blocked.js';

/** What a report is made of. */
export interface Shown {
  readonly elf: string;
  readonly found: FoundTasks;
  readonly fields: FutureFields | undefined;
  /** How long the target stood for the look; undefined for a dump. */
  readonly stoodMs: number | undefined;
  /** Columns of the terminal. */
  readonly width?: number;
  /** What libraries await by themselves, too. */
  readonly isFull?: boolean;
  /** What harts of a machine want that are in the middle of taking a lock. */
  readonly wanted: readonly WantedLock[];
  /** Nothing says where heaps are, so that `--scan` may help. */
  readonly mayHaveHeap: boolean;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** What could not be found out. */
export function notesOf({ notes, unread, searched }: Pick<FoundTasks, 'notes' | 'unread' | 'searched'>): string[] {
  if (unread === 0) return [...notes];
  const all = mebibytes(searched + unread);
  return [
    `${mebibytes(unread)} of ${all} were not read, as they cannot be or are more than a GiB: tasks there are missing`,
    ...notes,
  ];
}

export async function tasksJson(shown: Shown): Promise<object> {
  const { elf, found, stoodMs } = shown;
  const { runtimes, searched, unread, notes, noTask } = found;
  const task = (each: Task): Promise<object> => taskJson(shown, each);
  return {
    ...{ version: 2, program: elf, runtimes, searched, unread, notes },
    stoodMs: stoodMs === undefined ? null : Math.round(stoodMs),
    tasks: await Promise.all(found.tasks.map(task)),
    ...(noTask ? { noTask } : {}),
    blocking: await Promise.all(found.blocking.map(task)),
    others: await Promise.all(found.others.map(task)),
    locks_wanted: shown.wanted.map(wantedJson),
    ...findingsJson(found),
  };
}

/** A task, what its runtime knows of it, what it waits for, and the tree of what it awaits. */
export async function taskJson({ found, fields }: Pick<Shown, 'found' | 'fields'>, task: Task): Promise<object> {
  const node = async (each: AwaitNode): Promise<object> => {
    const locals = await fields?.of(each);
    return {
      future: each.future?.future ?? each.typeName,
      instance: each.typeName,
      kind: each.future?.kind ?? null,
      address: hex(each.address),
      path: each.path,
      state: each.state?.name ?? null,
      file: each.state?.file ?? each.future?.file ?? null,
      line: each.state?.line ?? each.future?.line ?? null,
      ...(found.isRunning(each) ? { running: true } : {}),
      ...(each.maybe ? { maybe: true } : {}),
      ...(each.cut ? { cut: each.cut } : {}),
      ...(locals ? { locals: locals.map(({ name, value }) => ({ name, value: valueJson(value) })) } : {}),
      awaits: await Promise.all(each.awaits.map(node)),
    };
  };
  const { runtime, fate, facts } = task;
  const waits = (found.waits.get(task) ?? []).map((wait) => waitJson(found, wait));
  const thread = found.blockedIn(task);
  const blocks = thread ? { blocks_thread: threadJson(thread) } : {};
  return { runtime, fate, facts, ...blocks, ...(waits.length > 0 ? { waits } : {}), ...(await node(task)) };
}

export async function tasksText(shown: Shown): Promise<string> {
  const { found, width = Number.POSITIVE_INFINITY } = shown;
  const trees: { readonly task: Task; readonly lines: readonly string[]; readonly key: string }[] = [];
  let left = 0;
  for (const task of [...found.tasks, ...found.blocking]) {
    const branch = branchOf(task, shown.isFull);
    left += leftOut(branch);
    trees.push({ task, ...(await branchShown(shown, task, branch)) });
  }
  const groups = alike(trees, ({ key }) => (shown.isFull ? undefined : key));
  const lines = groups.flatMap((group) => [...group.shown.lines, ...othersLines(group, width)]);
  const note = left === 0 ? '' : `; ${plural(left, 'Future')} of libraries left out: --full shows them`;
  return textLines([
    ...lines,
    ...othersText(found.others),
    ...findingsText(found),
    ...wantedLines(shown.wanted),
    ...wrapped(`${summary(shown)}${note}`, width, '  '),
  ]);
}

/** A task and the tree of all that it awaits, with what the leaves wait for. */
export async function taskLines(shown: Pick<Shown, 'found' | 'fields' | 'width'>, task: Task): Promise<string[]> {
  return (await branchShown(shown, task, branchOf(task, true))).lines;
}

/** What a wait has in common with those that are like it. */
function anyOf(wait: Wait<Task>): Wait<Task> {
  const isNumber = /^(?:timer|readable|writable)$/.test(wait.kind);
  const enders = wait.how === REACHABLE ? [] : wait.enders;
  return { ...wait, detail: isNumber ? undefined : wait.detail, enders };
}

/**
 * `key`: the same for tasks that differ in nothing but their numbers, addresses and sockets, when timers are due, and
 * who might end a wait.
 */
async function branchShown(
  { found, fields, width = Number.POSITIVE_INFINITY }: Pick<Shown, 'found' | 'fields' | 'width'>,
  task: Task,
  branch: Branch<AwaitNode>,
): Promise<{ readonly lines: string[]; readonly key: string }> {
  const waitsAt = new Map((found.waits.get(task) ?? []).map((wait) => [wait.node, wait] as const));
  const locals = new Map<AwaitNode, readonly FutureLocal[]>();
  const read = async ({ node, awaits }: Branch<AwaitNode>): Promise<void> => {
    locals.set(node, (await fields?.of(node)) ?? []);
    for (const each of awaits) await read(each);
  };
  await read(branch);
  const textOf = (each: Branch<AwaitNode>, isAny = false): NodeText => {
    const { node } = each;
    const isTask = each === branch;
    const thread = isTask ? found.blockedIn(task) : undefined;
    const all = leavesOf(each).flatMap((leaf) => waitsAt.get(leaf) ?? []);
    const waits = isAny ? all.map(anyOf) : all;
    return {
      ...nodeText(
        each,
        isAny
          ? { width: Number.POSITIVE_INFINITY, at: '' }
          : { width, at: `  @${hex((isTask ? task : node).address)}` },
      ),
      ...(isTask ? { before: '' } : {}),
      facts: isTask ? factsText(task, isAny ? ['id'] : []) : '',
      end: found.isRunning(node) ? '  (being polled)' : '',
      holds: (locals.get(node) ?? []).map(localText),
      below: [...(thread ? [threadText(thread)] : []), ...waits.map(waitText)],
    };
  };
  const keyLines = treeLines(branch, (each) => textOf(each, true), Number.POSITIVE_INFINITY);
  return { lines: treeLines(branch, textOf, width), key: keyLines.join('\n') };
}

/** Who waits for whom. */
export function blockedText(shown: Shown): string {
  const { found, wanted, isFull, width = Number.POSITIVE_INFINITY } = shown;
  const { lines, left } = blockedLines(found, isFull);
  const note = left === 0 ? '' : `; ${plural(left, 'wait')} of libraries left out: --full shows them`;
  const last = wrapped(`${summary(shown)}${note}`, width, '  ');
  return textLines([...lines, ...findingsText(found), ...wantedLines(wanted), ...last]);
}

function summary({ found, stoodMs, mayHaveHeap }: Shown): string {
  const { tasks, blocking, runtimes, searched, noTask } = found;
  const also =
    blocking.length === 0
      ? ''
      : `, and what ${blocking.length === 1 ? 'a thread blocks' : `${blocking.length} threads block`} on`;
  const stood = stoodMs === undefined ? '' : `; the target stood for ${(stoodMs / 1000).toFixed(2)} s`;
  const names = runtimes.filter((name) => name !== 'search');
  if (tasks.length > 0)
    return `${plural(tasks.length, 'task')}${names.length > 0 ? ` (${names.join(', ')})` : ''}${also}${stood}`;
  const hint = 'the stub does not say where heaps are: give yours with --scan START,SIZE';
  const why = noTask ? `, because ${noTask.why}: ${mayHaveHeap ? hint : noTask.wayOut}` : '';
  const beside = also === '' ? ` (${mebibytes(searched)} searched)` : also.replace(', and', ' beside');
  return `no task was found${beside}${why}${stood}`;
}

const FATES: readonly (readonly [Fate, string])[] = [
  ['ended', 'ended, and the result not yet taken'],
  ['free', 'room for a task that is not spawned'],
  ['internal', "the runtime's own, and what a thread blocks on"],
  ['unreferenced', 'no task, for nothing leads to it: dropped, or held in a way that its type does not show'],
];

/** What is no task, a line for each type. */
function othersText(others: readonly Task[]): string[] {
  return FATES.flatMap(([fate, meaning]) => {
    const counts = new Map<string, number>();
    for (const each of others.filter((other) => other.fate === fate)) {
      const name = calledNode(each);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    if (counts.size === 0) return [];
    const rows = [...counts].map(([name, count]) => `  ${count} x ${name}`);
    return [`${fate}: ${meaning}`, ...rows];
  });
}

/** `  [tokio: id 7, idle]`, behind the task. */
function factsText(task: Task, without: readonly string[]): string {
  const named = Object.entries(task.facts).filter(([name]) => !without.includes(name));
  const facts = named.map(([name, value]) => {
    const shown = typeof value === 'string' ? shownFile(value) : value;
    return name === 'state' ? shown : `${name} ${shown}`;
  });
  return facts.length === 0 ? '' : `  [${task.runtime}: ${facts.join(', ')}]`;
}

/** `labkern::work::level3  Suspend1 at /labkern/src/work.rs:50  @0x8020a0c0`. */
function nodeText(
  { node, inside, isDirect, isOwn }: Branch<AwaitNode>,
  { width, at: address }: { readonly width: number; readonly at: string },
): NodeText {
  const { future, state, path, maybe, cut } = node;
  const before = path === '' || path === '__awaitee' || !isDirect ? '' : `${path}: `;
  // A macro's await lies in the macro's file.
  const macro = isOwn && future?.file !== undefined ? macroOf(state?.file) : undefined;
  const { file, line } = (macro === undefined ? state : future) ?? {};
  const place = file === undefined ? '' : ` at ${clipPlace(shownPlace(file, line), width / 4)}`;
  const what = macro === undefined ? inside : `, in ${libraryName(macro)}`;
  const at = state === undefined ? '' : `  ${state.name}${place}${what}`;
  const notes = `${maybe ? '  (may have been moved)' : ''}${cut === undefined ? '' : `  (${cut})`}`;
  return { before, name: calledNode(node), after: `${at}${address}${notes}` };
}

function localText({ name, value }: FutureLocal): string {
  return `${name} = ${formatValue(value)}`;
}

function threadJson({ inside, own }: CodePlace): object {
  const place = { function: own?.function ?? null, file: own?.file ?? null, line: own?.line ?? null };
  return { inside: inside ?? null, ...place };
}

/** What is wrong: cycles, and tasks that nobody can wake. */
function findingsText({ deadlocks, lost }: FoundTasks): string[] {
  return [
    ...deadlocks.flatMap(deadlockText),
    ...lost.map((task) => `lost wake: ${taskName(task)} is suspended, and no waker of it is left`),
  ];
}

function deadlockText({ cycle, behind, likely }: Deadlock<Task>): string[] {
  const lines = cycle.map(({ task, wait }, i) => {
    const next = cycle[(i + 1) % cycle.length]?.task ?? task;
    const how =
      wait.how === undefined ? '' : wait.how === ITSELF ? ` ${shortName(next)}` : `, ${wait.how} ${shortName(next)}`;
    return `  ${taskName(task, placeOfWait(task, wait))} waits for ${whatText(wait)}${how}`;
  });
  const head = cycle.length === 1 ? 'a task waits for itself' : `${cycle.length} tasks wait for each other`;
  const word = likely ? 'likely ' : '';
  const after =
    behind.length === 0
      ? []
      : [`  ${plural(behind.length, 'more task')} behind them: ${behind.map(shortName).join(', ')}`];
  return [`${word}deadlock: ${head}`, ...lines, ...after];
}

function shortName({ runtime, facts, address }: Task): string {
  return runtime === BLOCK_ON ? 'what a thread blocks on' : `task ${facts.id ?? hex(address)}`;
}

function waitJson(found: FoundTasks, wait: Wait<Task>): object {
  const { kind, address, symbol, detail, how, enders, known, counted, node } = wait;
  return {
    ...{ kind, address: address === undefined ? null : hex(address), symbol: symbol ?? null, detail: detail ?? null },
    future: node.future?.future ?? node.typeName,
    at: hex(node.address),
    how: how ?? null,
    by: enders.map(({ task, holder, maybe }) => ({
      ...refer(found, task),
      ...(holder ? { holder: holder.future?.future ?? holder.typeName, line: holder.state?.line ?? null } : {}),
      ...(maybe ? { maybe } : {}),
    })),
    known,
    ...(counted ? { counted } : {}),
  };
}

export function findingsJson(found: FoundTasks): object {
  const { deadlocks, lost } = found;
  return {
    deadlocks: deadlocks.map(({ cycle, behind, likely }) => ({
      cycle: cycle.map(({ task }) => refer(found, task)),
      behind: behind.map((task) => refer(found, task)),
      likely,
    })),
    lost: lost.map((task) => refer(found, task)),
  };
}

/** A task by its place among `tasks`, and its number; what a thread blocks on by its place among `blocking`. */
export function refer({ tasks, blocking }: FoundTasks, task: Task): object {
  const { id } = task.facts;
  if (task.runtime === BLOCK_ON) return { blocking: placeIn(blocking, task) };
  return { task: placeIn(tasks, task), id };
}

const places = new WeakMap<readonly Task[], ReadonlyMap<Task, number>>();

/** As `indexOf`, which would go through 100,000 tasks for each that waits. */
function placeIn(tasks: readonly Task[], task: Task): number {
  const known = places.get(tasks) ?? new Map(tasks.map((each, at) => [each, at]));
  places.set(tasks, known);
  return known.get(task) ?? -1;
}
