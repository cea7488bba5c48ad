import type { Addr } from '../../base/addr.js';
import type { Die } from '../../dwarf/index.js';
import type { Stuck } from '../../trace/index.js';

/** What a runtime knows of a task. Members that it does not keep are left out. */
export interface KnownTask {
  readonly runtime: string;
  readonly id?: number;
  readonly name?: string;
  /** Where it was spawned: `src/main.rs:12:5`. */
  readonly spawned?: string;
}

/** A task that will not be polled again, as memory shows. */
export interface StuckTask extends Pick<Stuck, 'why' | 'wait' | 'file' | 'line'> {
  /** The task's own, and those that it awaits, the outermost first. `instance`: the full type name. */
  readonly futures: readonly { readonly address: Addr; readonly instance: string }[];
}

/** A function that a runtime calls for each poll of a task. Its first argument is the task's header. */
export interface TaskPoller {
  readonly die: Die;
  readonly name: string;
  /** Where the header lies in its task. */
  readonly header: number;
  /** Words that identify the task: so many bytes from the header. */
  readonly words: readonly number[];
  /** What the words say. */
  taskOf(words: readonly bigint[]): KnownTask;
}

/** Where the runtimes of a program have their tasks' Futures. Futures are named by the offset of their type's DIE. */
export interface TaskPlaces {
  /** How many bytes behind its task's header a Future lies. Wakers point to headers. */
  readonly offsets: ReadonlyMap<number, number>;
  /** The Futures of tasks, without those of a runtime's own threads. */
  readonly tasks: ReadonlySet<number>;
  /** Types that hold a task's Future in place, by name: who drops one drops the Future. */
  readonly holders: ReadonlyMap<string, { readonly future: number; readonly offset: number }>;
  /** Functions of a runtime that drop a task's Future. Their first argument is the task's header. */
  readonly enders: readonly TaskEnder[];
  readonly pollers: readonly TaskPoller[];
  /** Functions that poll a task's Future. Their first argument is the task's header. */
  readonly hosts: readonly Pick<TaskEnder, 'die' | 'future' | 'offset'>[];
  /** The functions in which each runtime calls a task's Future, by their names. */
  readonly polls: readonly { readonly runtime: string; readonly functions: RegExp }[];
}

/** A function that drops the Future of the task in its first argument. */
export interface TaskEnder {
  readonly die: Die;
  readonly name: string;
  readonly future: number;
  /** Of the Future, from the header. */
  readonly offset: number;
  /** It drops only where one of these bits is set in the header, when it is called. */
  readonly when: { readonly offset: number; readonly size: 1 | 2 | 4 | 8; readonly bits: bigint } | undefined;
}

export const noTaskPlaces: TaskPlaces = {
  offsets: new Map(),
  tasks: new Set(),
  holders: new Map(),
  enders: [],
  pollers: [],
  hosts: [],
  polls: [],
};
