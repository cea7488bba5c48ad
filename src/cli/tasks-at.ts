import { hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import {
  type Shown as Branch,
  clipPlace,
  leftOut,
  type NodeCode,
  type NodeText,
  ownTree,
  plural,
  shownFile,
  shownPlace,
  textLines,
  treeLines,
  wholeTree,
} from '../text/index.js';
import {
  type AwaitAt,
  calledOf,
  isPointer,
  type Landmark,
  rootText,
  type TaskAt,
  TasksAt,
  timeText,
} from '../trace/index.js';
import { note } from './failure.js';
import type { TasksArguments } from './options/target.js';
import { headJson, noMatch, readSaved } from './saved-trace.js';
import { lineWidth, printed } from './terminal.js';
import type { TraceFilter } from './trace-filter.js';

export interface TasksAtArguments {
  readonly trace: string;
  readonly plugin: readonly string[];
  readonly at: Landmark;
  readonly filter: TraceFilter | undefined;
  readonly sort: TasksArguments['sort'];
  readonly top: number | undefined;
  readonly json: boolean;
  readonly full: boolean;
}

/** `rsptrace tasks TRACE --at TIME`: every task and what it awaited at that moment. Gives the exit status. */
export async function tasksAt(args: TasksAtArguments): Promise<number> {
  const { trace, at, plugin } = args;
  const found = new TasksAt(at);
  const read = await readSaved(trace, found, { plugin });
  if (!found.isReached && typeof at !== 'number') {
    throw new RsptraceError('TRACE_NO_MATCH', `${trace} has nothing that --at asks for`, {
      hint: 'take a time, or a function that was traced: rsptrace report lists them',
    });
  }
  if (!found.isReached) note(`${trace} ends before: its end is shown`);
  const shown = select(found, args);
  if (found.isReached && found.isEmpty) note(`${trace} has no poll before ${timeText(found.time)}`);
  const tasks = shown.map((task) => taskJson(task, found.time));
  const json = { ...headJson(trace, read), at_ns: found.time, ended: found.ended, tasks };
  return printed(args, json, () => tasksText(shown, found, args.full));
}

function tasksText(tasks: readonly TaskAt[], found: TasksAt, isFull: boolean): string {
  const branches = tasks.map((task) => ({ task, branch: branchOf(task, isFull) }));
  const lines = branches.flatMap(({ task, branch }) => taskLines(task, branch, found));
  const left = branches.reduce((sum, { branch }) => sum + leftOut(branch), 0);
  const hidden = left === 0 ? '' : `; ${plural(left, 'Future')} of libraries left out: --full shows them`;
  const ended = found.ended > 0 ? `; ${found.ended} had ended` : '';
  return textLines([...lines, `${plural(tasks.length, 'task')} at ${timeText(found.time)}${ended}${hidden}`]);
}

function select(found: TasksAt, { filter, sort, top }: TasksAtArguments): TaskAt[] {
  const all = found.tasks();
  const field = (task: TaskAt, name: string) => taskField(task, name, found.time);
  const isWanted = (task: TaskAt): boolean =>
    filter === undefined ||
    (filter.kind !== 'fn' && filter.matches(task.root.future.future) && (filter.condition?.(task, field) ?? true));
  const wanted = all.filter(isWanted);
  if (filter !== undefined && wanted.length === 0) {
    throw noMatch(
      '--filter',
      filter.text,
      all.map(({ root }) => root.future.future),
    );
  }
  if (sort === 'waiting') wanted.sort((a, b) => a.since - b.since);
  else if (sort === 'polls') wanted.sort((a, b) => b.polls - a.polls);
  else if (sort === 'name') wanted.sort((a, b) => (rootText(a.root) < rootText(b.root) ? -1 : 1));
  return wanted.slice(0, top);
}

/** What a condition may compare of a task. */
function taskField(task: TaskAt, name: string, at: number): number | string | undefined {
  switch (name) {
    case 'waiting':
    case 'duration':
      return at - task.since;
    case 'state':
    case 'polls':
    case 'hart':
      return task[name];
    case 'awaits':
      return innermost(task.tree)?.name;
  }
  return undefined;
}

function innermost(tree: readonly AwaitAt[]): AwaitAt | undefined {
  const last = tree.at(-1);
  return last && (innermost(last.awaits) ?? last);
}

/** Of a task whose own Future was not traced. */
const aside = { address: undefined, state: undefined, isOpen: false };

/** Where what is awaited is declared is not in a trace. */
function codeOf(node: AwaitAt, task: AwaitAt, { file }: TaskAt['root']['future']): NodeCode {
  return { name: node.name, file: node.state?.file, declared: node === task ? file : undefined };
}

/** The share of a line that a place may have. */
const PLACE_SHARE = 4;

/** A task with what it awaits. */
function branchOf({ root, tree }: TaskAt, isFull: boolean): Branch<AwaitAt> {
  const [only, ...more] = tree;
  const isOwn = more.length === 0 && only?.address === root.address && only.name === root.future.future;
  const { future: name, instance } = root.future;
  const node = isOwn && only ? only : { ...aside, name, instance, awaits: tree };
  return isFull ? wholeTree<AwaitAt>(node) : ownTree(targetOf(node), (each) => codeOf(each, node, root.future));
}

/** What only forwards polls leads to what it points to. */
function targetOf(node: AwaitAt): AwaitAt {
  const [only, ...more] = node.awaits;
  return only && more.length === 0 && isPointer(node) ? targetOf(only) : node;
}

function taskLines(task: TaskAt, branch: Branch<AwaitAt>, { time: at, labels }: TasksAt): string[] {
  const { root, state, since, hart, polls, woken } = task;
  const width = lineWidth();
  const what =
    state === 'running' ? `polled on ${labels.of(hart)} for` : state === 'waiting' ? 'waits for' : 'not known for';
  const wake = woken === undefined ? '' : `, woken ${timeText(at - woken.time)} ago`;
  const facts = `  [${what} ${timeText(at - since)}, ${plural(polls, 'poll')}${wake}]`;
  const textOf = (each: Branch<AwaitAt>): NodeText => {
    const { name: future, instance } = each.node;
    const { address, isOpen } = each === branch ? { ...root, isOpen: false } : each.node;
    const after = `${placeOf(each, width)}${address === undefined ? '' : `  @${hex(address)}`}`;
    return {
      name: calledOf({ future, instance }),
      after,
      facts: each === branch ? facts : '',
      end: isOpen ? '  (being polled)' : '',
    };
  };
  return treeLines(branch, textOf, width);
}

/** `  Suspend0 at src/work.rs:12`; links of a chain have a place alone. */
function placeOf({ node: { state }, inside }: Branch<AwaitAt>, width: number): string {
  if (state?.file === undefined) return state === undefined ? '' : `  ${state.name}`;
  const place = state.line === undefined ? shownFile(state.file) : shownPlace(state.file, state.line);
  return `  ${state.name} at ${clipPlace(place, width / PLACE_SHARE)}${inside}`;
}

function taskJson(task: TaskAt, at: number): object {
  const { root, state, since, hart, polls, first, woken, tree } = task;
  return {
    future: root.future.future,
    instance: root.future.instance,
    address: hex(root.address),
    state,
    since_ns: since,
    for_ns: at - since,
    hart,
    polls,
    first_poll_ns: first,
    woken_ns: woken?.time ?? null,
    awaits: tree.map(awaitJson),
  };
}

function awaitJson({ name, instance, address, state, isOpen, awaits }: AwaitAt): object {
  return {
    future: name,
    instance,
    address: address === undefined ? null : hex(address),
    state: state?.name || null,
    file: state?.file ?? null,
    line: state?.line ?? null,
    ...(isOpen ? { running: true } : {}),
    awaits: awaits.map(awaitJson),
  };
}
