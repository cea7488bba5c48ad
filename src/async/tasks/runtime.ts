import type { Addr } from '../../base/addr.js';
import type { Logger } from '../../base/logger.js';
import type { DebugInfo } from '../../dwarf/index.js';
import type { Frame, FrameVariable } from '../../target/unwind/index.js';
import type { FutureSet, FutureType } from '../futures/index.js';
import type { AwaitNode } from './await-tree.js';
import type { Region } from './memory-image.js';
import type { Snapshot } from './snapshot.js';

/**
 * What a task is to its executor. `live`: it will be polled again. `ended`: its result waits to be taken. `free`: room
 * for a task that is not spawned. `internal`: the runtime's own. `unreferenced`: nothing that lives points to it.
 */
export type Fate = 'live' | 'ended' | 'free' | 'internal' | 'unreferenced';

/** What an executor knows of a task, by name, in the order in which it is shown: `id`, `state`, `owner`. */
export type TaskFacts = Readonly<Record<string, string | number>>;

/** Where a task was found. */
export interface FoundRoot {
  /** Undefined if its type is not known as a Future. */
  readonly future: FutureType | undefined;
  /** Of the Future. */
  readonly address: Addr;
  /** Where no `future` is known. */
  readonly typeName?: string;
  /** The words that point to it: `Box<dyn Future>`s, in statics, on the heap, on a stack. */
  readonly references: readonly Addr[];
  /** The address that stands for the task in its wakers and in handles to it. */
  readonly header?: Addr;
  /**
   * Whether something may wake it: by the runtime's own count of those who refer to it. Left out if that does not
   * tell.
   */
  readonly wakeable?: boolean;
  /** `live` where it is left out. */
  readonly fate?: Fate;
  readonly facts?: TaskFacts;
}

/** The data that a runtime, or the search, can use. */
export interface TaskContext {
  /** The program's debug info: with `rsptrace/values` a runtime reads the executor's own statics by it. */
  readonly debug: DebugInfo;
  readonly futures: FutureSet;
  /** The memory that may hold tasks, as it was when the target stood: statics, heaps, used parts of stacks. */
  readonly memory: Snapshot;
  /** Whether the allocator's marks say that a block of so many bytes was freed. Only what is certain counts. */
  isFreed(block: Addr, bytes: number): Promise<boolean>;
  /** Memory with stacks: no executor keeps a task there. */
  readonly stacks: readonly Region[];
  /** Unused parts of stacks: their content is stale. */
  readonly dead: readonly Region[];
  /** Whether all memory with words of the program was found: not if it has a heap that nothing shows. */
  readonly knowsHeaps: boolean;
  /** The outermost Future that each hart polls now: also a task, wherever it lies. */
  readonly running: readonly { readonly future: FutureType; readonly address: Addr }[];
  /** Each hart's or thread's stack, innermost frame first: an executor may keep its tasks in a function's variables. */
  readonly frames: readonly (readonly Frame[])[];
  /** A frame's parameters and variables with their values, as far as the debug info has their places. */
  variables(frame: Frame): Promise<readonly FrameVariable[]>;
  /** A thread polls it and waits in the kernel: it waits for that, whatever its state says. */
  isBlocked(task: AwaitNode): boolean;
  readonly logger?: Logger | undefined;
  /** For the user: what could not be found out, one sentence. */
  note(text: string): void;
}

/**
 * Knows where one executor keeps its tasks: an object in a file of `tasks/runtimes/`. Layouts come from the program's
 * DWARF; where a member is missing, it notes which.
 */
export interface Runtime {
  readonly name: string;
  /** The functions of its wakers, by their demangled names: other executors' tasks have other ones. */
  readonly wakers?: RegExp;
  /**
   * The functions in which it calls the poll of a task's Future, by their names without generic arguments. Recordings
   * ask the runtimes of this folder alone.
   */
  readonly polls?: RegExp;
  /** The executor's tasks; undefined if the program does not use this runtime. */
  roots(context: TaskContext): Promise<readonly FoundRoot[] | undefined>;
}

export function isIn(regions: readonly Region[], address: Addr): boolean {
  return regions.some(({ start, length }) => address >= start && address < start + BigInt(length));
}
