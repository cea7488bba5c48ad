import { type Addr, hex } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import type { AnyBegin, AnyEnd, GuestNanos, ThreadRef, TraceEvent } from './events.js';
import { isBegin, isEnd } from './open-calls.js';

/** A process of a kernel: an address space, by the root of its page tables. */
export interface ProcessRef {
  /** From 2, in the order of their first events: the kernel is 1. */
  readonly number: number;
  /** The physical address of the root. */
  readonly space: Addr;
}

/** What a trace shows of a process. */
export interface Process extends ProcessRef {
  /** Its programs, where several are traced. */
  readonly programs: ReadonlySet<string>;
  /**
   * What context switches call the thread that it was seen with first: by its newest name. ` and 2 more` behind it:
   * others were seen in the same address space, of this process or of a later one.
   */
  readonly thread: string | undefined;
  /** From the first to the last call or poll that was seen to begin or end in it. */
  readonly first: GuestNanos;
  readonly last: GuestNanos;
}

type Seen = { -readonly [K in keyof Process]: Process[K] } & {
  readonly programs: Set<string>;
  /** All of them, by where their contexts are saved and their numbers, with their newest names. */
  readonly threads: Map<string, string>;
};

/** A thread keeps its number when it gets another name. */
function threadKey({ stack, name = '' }: ThreadRef): string {
  return `${hex(stack)} ${/:(\d+)(?: \(|$)/.exec(name)?.[1] ?? ''}`;
}

/** Of an event: the address space, if it is a program's. */
export function spaceOf(event: AnyBegin | AnyEnd): Addr | undefined {
  return event.thread?.space ?? ('root' in event ? event.root.space : undefined);
}

/** What a process is called: `sh:2 (proc[1])`, `shell`, `process 0x80254000`. */
export function processName({ thread, programs, space }: Omit<Process, 'number'>): string {
  const [program] = programs;
  return thread ?? program ?? processText(space);
}

export const processText = (space: Addr): string => `process ${hex(space)}`;

/** Follows the processes of a kernel. */
export class Processes {
  readonly #all = new Map<Addr, Seen>();
  /** By hart: what context switches say that it runs. */
  readonly #running: (ThreadRef | undefined)[] = [];

  /** In the order of their numbers. */
  get all(): readonly Process[] {
    return [...this.#all.values()];
  }

  of(space: Addr): Process | undefined {
    return this.#all.get(space);
  }

  /** Gives the process that is seen for the first time. */
  on(event: TraceEvent): ProcessRef | undefined {
    if (isBegin(event)) return this.#began(event);
    if (isEnd(event)) this.#ended(event);
    return undefined;
  }

  #began(begin: AnyBegin): ProcessRef | undefined {
    if (begin.thread?.name !== undefined) this.#running[begin.hart] = begin.thread;
    const space = spaceOf(begin);
    if (space === undefined) return undefined;
    const before = this.#all.size;
    const { time } = begin;
    const process = madeOnce(this.#all, space, () => ({
      ...{
        number: before + 2,
        space,
        programs: new Set<string>(),
        thread: undefined,
        threads: new Map<string, string>(),
      },
      ...{ first: time, last: time },
    }));
    const program = begin.thread?.program;
    if (program !== undefined) process.programs.add(program);
    process.last = time;
    const running = this.#running[begin.hart];
    if (running) {
      process.threads.set(threadKey(running), running.name ?? '');
      const [first] = process.threads.values();
      const { size } = process.threads;
      process.thread = size > 1 ? `${first} and ${size - 1} more` : first;
    }
    return this.#all.size > before ? process : undefined;
  }

  #ended(end: AnyEnd): void {
    if (end.thread?.name !== undefined) this.#running[end.hart] = undefined;
    const space = end.type === 'call-end' || end.type === 'poll-end' ? spaceOf(end) : undefined;
    const process = space === undefined ? undefined : this.#all.get(space);
    if (process) process.last = end.time;
  }
}
