import { entriesOf, isRunnable, textOf } from '../../base/proc.js';
import type { Hart } from '../../rsp/index.js';

/** A stop costs a thread that waits in the kernel less than this: it wakes, stops, and waits again. In nanoseconds. */
const LEAST_NS = 100_000;

/** Which threads of a process run, before each interrupt. One that then stands in a system call ran there. */
export class KernelTime {
  /** By thread: how long it has had a processor, in nanoseconds. */
  #had = new Map<string, number>();
  #running = new Set<number>();

  /** Reads it of every thread. */
  read(pid: number): void {
    const had = new Map<string, number>();
    for (const thread of entriesOf(`/proc/${pid}/task`)) {
      // The time on a processor comes first (sched-stats.rst of Linux); it is missing where the kernel keeps none.
      const text = textOf(`/proc/${pid}/task/${thread}/schedstat`);
      const nanos = text === '' ? Number.POSITIVE_INFINITY : Number.parseInt(text, 10);
      had.set(thread, nanos);
      const before = this.#had.get(thread) ?? 0;
      if ((text === '' || nanos - before >= LEAST_NS) && isRunnable(pid, thread)) this.#running.add(Number(thread));
    }
    this.#had = had;
  }

  /** The target has gone on. */
  forget(): void {
    this.#running.clear();
  }

  runs({ id }: Hart): boolean {
    return this.#running.has(Number.parseInt(/[^.]*$/.exec(id)?.[0] ?? '', 16));
  }
}
