import { hex } from '../../base/addr.js';
import { ownFiles, plural, shownPlace } from '../../text/index.js';
import { calledOf, isPointer } from '../../trace/index.js';
import type { StuckTask } from '../futures/index.js';
import type { AwaitNode } from './await-tree.js';
import { BLOCK_ON, type Task, type Tasks } from './find-tasks.js';
import type { Wait } from './waits.js';

/** More of those who can end one wait are only counted. */
const MOST_NAMED = 5;

/** How a task ends a wait for its end. */
export const ITSELF = 'itself';
/** Memory shows who could end a wait, not who will. */
export const REACHABLE = 'reachable by';
/** What a task waits for, in a sentence. */
export const KINDS: Readonly<Record<string, string>> = {
  message: 'a message of the channel',
  room: 'room in the channel',
  oneshot: 'the message of the oneshot',
  timer: 'a timer',
  task: 'the end of',
  tasks: 'the end of one of',
  closure: 'what spawn_blocking runs',
  watch: 'a change of the watch',
  readable: 'a socket to be readable',
  writable: 'a socket to be writable',
  nothing: 'nothing, for ever',
  turn: 'its next turn',
};

/** `waits for Mutex at 0x5581c0, held by task 12 (app::worker, src/db.rs:40)`. */
export function waitText(wait: Wait<Task>): string {
  const { how, enders } = wait;
  const what = `waits for ${whatText(wait)}`;
  if (how === undefined) return what;
  if (how === ITSELF && enders.length === 0)
    return wait.detail === undefined ? `${what} a task that was not found` : what;
  if (how === ITSELF)
    return `${what} ${enders
      .map(({ task }) => taskName(task))
      .slice(0, MOST_NAMED)
      .join(', ')}${moreThan(enders.length)}`;
  if (enders.length === 0) return `${what}, ${noneText(wait, how)}`;
  // A task that has two, one of them perhaps moved out, is named once.
  const names = new Set(
    enders.map(({ task, holder }) => taskName(task, (holder && placeOf(task, [holder])) ?? placeOf(task))),
  );
  const named = [...names].slice(0, MOST_NAMED);
  const isOne = named.length > 1 && enders.every(({ maybe }) => maybe);
  const more = moreThan(names.size);
  return `${what}, ${how} ${named.join(isOne ? ' or ' : ', ')}${more}${othersText(wait)}`;
}

/** Of a static memory does not say who will use it, because code needs no pointer to it. */
function noneText({ symbol, how, counted }: Wait<Task>, words: string): string {
  if (counted?.count === 0) return `and all ${counted.of}s are gone`;
  if (counted) return `${plural(counted.count, counted.of)}, held by no task that was found`;
  return how === REACHABLE && symbol !== undefined
    ? 'a static: memory does not tell whose code uses it'
    : `${words} no task that was found`;
}

/** Those who can end it, and have no task that was found. */
function othersText({ known, enders, counted }: Wait<Task>): string {
  const left = counted === undefined ? 0 : counted.count - enders.length;
  if (left > 0 && counted) return ` or ${plural(left, `other ${counted.of}`)}, held by no task that was found`;
  return known === 'some' && counted === undefined ? ' or others' : '';
}

function moreThan(count: number): string {
  return count > MOST_NAMED ? ` and ${count - MOST_NAMED} more` : '';
}

/** `Mutex app::SUM at 0x5581c0`. */
export function whatText({ kind, symbol, address, detail }: Wait<Task>): string {
  if (kind === 'readable' || kind === 'writable') return detail === undefined ? kind : `${kind}: ${detail}`;
  const at = address === undefined ? '' : ` at ${hex(address)}`;
  return `${KINDS[kind] ?? kind}${symbol === undefined ? '' : ` ${symbol}`}${at}${detail === undefined ? '' : ` (${detail})`}`;
}

/** `task 12 (app::worker, src/db.rs:40)`: its first Future in the program's own code, and its number or address. */
export function taskName(task: Task, place = placeOf(task)): string {
  const { id, name } = task.facts;
  const what = task.runtime === BLOCK_ON ? 'what a thread blocks on' : `task ${id ?? hex(task.address)}`;
  const words = [
    ...(name === undefined ? [] : [`"${name}"`]),
    ownFuture(task),
    ...(place === undefined ? [] : [place]),
  ];
  return `${what} (${words.join(', ')})`;
}

/** What a Future is called, for people. */
export function calledNode({ future, typeName }: AwaitNode): string {
  return future ? calledOf(future) : typeName;
}

/** What only forwards polls leads to what it points to. */
export function targetOf<T extends AwaitNode>(node: T): AwaitNode {
  const [only, ...more] = node.awaits;
  return only && more.length === 0 && node.future && isPointer(node.future) ? targetOf(only) : node;
}

/** The name of its first Future in the program's own code. */
export function ownFuture(task: AwaitNode): string {
  const { chain, isOwn } = ownCode(task);
  const own = chain.find(({ future }) => isOwn(future?.file)) ?? task;
  return calledNode(own);
}

/** Where it waits in the program's own code: the innermost await there. */
export function placeOf(task: Task, nodes?: readonly AwaitNode[]): string | undefined {
  const { file, line } = awaitOf(task, nodes) ?? {};
  return file === undefined ? undefined : shownPlace(file, line);
}

/** Where a task waits so: in the program's own code around the wait; where a library waits by itself, in that. */
export function placeOfWait(task: Task, { node, above }: Pick<Wait<Task>, 'node' | 'above'>): string | undefined {
  const around = [...above].reverse();
  const { file, line } = [...around, node].findLast(({ state }) => state?.file !== undefined)?.state ?? {};
  return placeOf(task, around) ?? (file === undefined ? undefined : shownPlace(file, line));
}

/** The same of a task, as a file and a line. */
export function awaitOf(
  task: Task,
  nodes?: readonly AwaitNode[],
): { readonly file: string | undefined; readonly line: number | undefined } | undefined {
  const { chain, isOwn } = ownCode(task);
  const among = nodes ?? chain;
  const own = among.findLast(({ state }) => isOwn(state?.file))?.state;
  // A macro's await lies in the macro's file.
  return own ?? among.findLast(({ future }) => isOwn(future?.file))?.future;
}

/** Whose code a task is; and it to the end of what it awaits, by the first branch with the program's own code. */
function ownCode(task: AwaitNode): {
  readonly chain: readonly AwaitNode[];
  readonly isOwn: (file: string | undefined) => boolean;
} {
  const files = (node: AwaitNode): (string | undefined)[] => [
    ...[node.future?.file, node.state?.file],
    ...node.awaits.flatMap(files),
  ];
  const isOwn = ownFiles(files(task));
  const chain = [task];
  for (let at: AwaitNode | undefined = task; at; at = at.awaits.find((each) => files(each).some(isOwn)) ?? at.awaits[0])
    if (at !== task) chain.push(at);
  return { chain, isOwn };
}

/** The tasks that will not be polled again, as memory shows: those of deadlocks, each once, and lost wakes. */
export function stuckTasks({ deadlocks, lost, waits }: Pick<Tasks, 'deadlocks' | 'lost' | 'waits'>): StuckTask[] {
  const found = deadlocks.flatMap(({ cycle, likely }) =>
    cycle.map(({ task, wait }): StuckTask => {
      const why = likely ? 'likely-deadlock' : 'deadlock';
      return { why, futures: futuresOf(task), wait: waitText(wait), ...awaitPlace(task, wait) };
    }),
  );
  const forgotten = lost.map((task): StuckTask => {
    const [wait] = waits.get(task) ?? [];
    const what = wait ? waitText(wait) : 'is suspended';
    return {
      why: 'lost-wake',
      futures: futuresOf(task),
      wait: `${what}, and no waker is left`,
      ...awaitPlace(task, wait),
    };
  });
  return [...found, ...forgotten];
}

function awaitPlace(task: Task, wait: Wait<Task> | undefined): Pick<StuckTask, 'file' | 'line'> {
  const { file, line } = awaitOf(task, wait && [...wait.above].reverse()) ?? {};
  return { file, line };
}

/** The task's Future, and those that it awaits, the outermost first. */
function futuresOf(task: AwaitNode): StuckTask['futures'] {
  const { address, typeName: instance } = task;
  return [{ address, instance }, ...task.awaits.flatMap(futuresOf)];
}
