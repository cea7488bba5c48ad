// One look of `rsptrace top`: what a copy of the target's memory says of its tasks.
import { createHash } from 'node:crypto';
import {
  type FoundTasks,
  type RunningCopy,
  type TargetCopy,
  type TaskOptions,
  tasksIn,
  taskView,
  type Understood,
} from '../../api/index.js';
import type { AwaitNode, Task } from '../../async/tasks/index.js';
import type { Addr } from '../../base/addr.js';
import { Breath } from '../../base/breath.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import { plural } from '../../text/index.js';

/** What was copied of a target, and what that took. */
export interface Taken {
  readonly copy: TargetCopy | RunningCopy;
  /** Since 1970, in milliseconds. */
  readonly at: number;
  /** How long the target stood for it, in milliseconds; 0 if it ran on. */
  readonly stoodMs: number;
}

export interface Look extends Pick<Taken, 'at' | 'stoodMs'> {
  /** From 1. */
  readonly number: number;
  readonly found: FoundTasks;
  /** Threads of a process, and how many ran when it was copied; undefined where all stood. */
  readonly threads: { readonly all: number; readonly running: number } | undefined;
  /** The tasks that changed while they were copied: what is shown of them need not have been so at one moment. */
  readonly changing: ReadonlySet<Task>;
  /** Of each task: what its Futures consist of. It is another one if a byte has changed. */
  readonly contents: ReadonlyMap<Task, string>;
}

/** Of a lock or a channel that a task waits for: with it stands who waits, and how many permits are left. */
const RESOURCE_BYTES = 64;
/** No Future is larger, unless its size comes from damaged debug info. */
const MOST_BYTES = 1 << 24;

/** What a look has found. The target may run meanwhile. */
export async function lookAtTasks(
  program: Understood,
  { copy, at, stoodMs }: Taken,
  number: number,
  options: TaskOptions,
): Promise<Look> {
  const tasks = await tasksIn(program, await taskView(program, copy), options);
  const found = { ...tasks, notes: [...tasks.notes, ...unseenNotes(copy)] };
  const changing = new Set<Task>();
  const contents = new Map<Task, string>();
  const breath = new Breath();
  for (const task of [...found.tasks, ...found.blocking]) {
    await breath.take();
    const parts = partsOf(found, task);
    contents.set(task, await contentOf(copy.memory, parts, breath));
    if ('stood' in copy && !(await allStood(copy, parts, breath))) changing.add(task);
  }
  const threads = 'threads' in copy ? { all: copy.threads, running: copy.running } : undefined;
  return { number, at, stoodMs, found, threads, changing, contents };
}

function unseenNotes(copy: Taken['copy']): string[] {
  if (!('unseen' in copy) || copy.unseen === 0) return [];
  return [`Linux does not say where ${plural(copy.unseen, 'thread')} of it are, so what they block on is not found`];
}

interface Part {
  readonly address: Addr;
  readonly length: number;
  /** Not the task's own: it changes with other tasks, too. */
  readonly isShared: boolean;
}

/** The memory that a task consists of, and that of what it waits for. */
function partsOf(found: FoundTasks, task: Task): Part[] {
  const parts: Part[] = [];
  const visit = ({ address, future, awaits }: AwaitNode): void => {
    const length = Math.min(future?.size ?? 0, MOST_BYTES);
    if (length > 0) parts.push({ address, length, isShared: false });
    for (const inner of awaits) visit(inner);
  };
  visit(task);
  const own = outermost(parts);
  for (const { address } of found.waits.get(task) ?? [])
    if (address !== undefined) own.push({ address, length: RESOURCE_BYTES, isShared: true });
  return own;
}

/** Those that are in no other one, by address: most Futures are in the Future that awaits them. */
function outermost(parts: readonly Part[]): Part[] {
  const sorted = parts.toSorted((a, b) => Number(a.address - b.address) || b.length - a.length);
  let end = 0n;
  return sorted.filter(({ address, length }) => {
    const own = address + BigInt(length);
    if (own <= end) return false;
    end = own;
    return true;
  });
}

async function contentOf(memory: MemoryReader, parts: readonly Part[], breath: Breath): Promise<string> {
  const hash = createHash('sha1');
  for (const { address, length, isShared } of parts) {
    await breath.take();
    if (!isShared) hash.update((await memory.read(address, length)) ?? '');
  }
  return hash.digest('base64');
}

async function allStood(copy: RunningCopy, parts: readonly Part[], breath: Breath): Promise<boolean> {
  for (const { address, length } of parts) {
    await breath.take();
    if (!(await copy.stood(address, length))) return false;
  }
  return true;
}
