import type { FoundTasks } from '../api/index.js';
import {
  BLOCK_ON,
  type Deadlock,
  ITSELF,
  KINDS,
  placeOf,
  type Task,
  taskName,
  type Wait,
  waitText,
  whatText,
} from '../async/tasks/index.js';
import { hex } from '../base/addr.js';
import type { CodePlace } from '../target/stacks/index.js';
import { plural, shownPlace } from '../text/index.js';

/** A line for each wait of each task that another one can end, then the others, by what they wait for. */
export function blockedLines({ tasks, blocking, waits, blockedIn }: FoundTasks): string[] {
  const lines: string[] = [];
  const others = new Map<string, number>();
  const count = (what: string): void => void others.set(what, (others.get(what) ?? 0) + 1);
  for (const task of [...tasks, ...blocking]) {
    const own = waits.get(task) ?? [];
    const thread = blockedIn(task);
    if (thread) {
      lines.push(`${taskName(task)} ${threadText(thread)}`);
      continue;
    }
    for (const wait of own) {
      if (wait.how === undefined) count(KINDS[wait.kind] ?? wait.kind);
      else lines.push(`${taskName(task, placeOf(task, [...wait.above].reverse()))} ${waitText(wait)}`);
    }
    if (own.length === 0) count('something else');
  }
  const rest = [...others].map(([what, number]) => `${number} for ${what}`);
  return rest.length === 0 ? lines : [...lines, `others wait: ${rest.join(', ')}`];
}

/** `blocks its thread in std::sync::Mutex::lock at src/main.rs:40`. */
export function threadText({ inside, own }: CodePlace): string {
  const at = own?.file === undefined ? '' : ` at ${shownPlace(own.file, own.line)}`;
  return `blocks its thread${inside === undefined ? '' : ` in ${inside}`}${at}`;
}

export function threadJson({ inside, own }: CodePlace): object {
  const place = { function: own?.function ?? null, file: own?.file ?? null, line: own?.line ?? null };
  return { inside: inside ?? null, ...place };
}

/** What is wrong: cycles, and tasks that nobody can wake. */
export function findingsText({ deadlocks, lost }: FoundTasks): string[] {
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
    return `  ${taskName(task, placeOf(task, [...wait.above].reverse()))} waits for ${whatText(wait)}${how}`;
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

export function waitJson(found: FoundTasks, wait: Wait<Task>): object {
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
function refer({ tasks, blocking }: FoundTasks, task: Task): object {
  const { id } = task.facts;
  if (task.runtime === BLOCK_ON) return { blocking: blocking.indexOf(task) };
  return { task: tasks.indexOf(task), id };
}
