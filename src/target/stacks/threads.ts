/*
 * Where the threads of a process of this machine are, without a stop. A waiting thread's stack stays as it is, so it is
 * read meanwhile; it counts only if the thread has not run since when it was read.
 */

import type { Architecture } from '../../arch/index.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import { entriesOf, textOf } from '../../base/proc.js';
import type { DebugInfo } from '../../dwarf/index.js';
import type { ElfFile } from '../../elf/index.js';
import { librariesOfProcess, memoryOfProcess, threadAt, type WaitingThread } from '../index.js';
import { type Frame, type Hooked, Stacks } from '../unwind/index.js';

/** A thread, by its number in the system. */
export interface ThreadLook {
  readonly thread: number;
  readonly name: string;
  /** It waits in the kernel; else it computes, and nothing says where. */
  readonly waits: boolean;
  /** Of a thread that waits; none if its stack was not walked. */
  readonly frames: readonly Frame[];
}

interface ThreadsOptions {
  readonly pid: number;
  /** At its address in the process. */
  readonly elf: ElfFile;
  readonly arch: Architecture;
  readonly debug: DebugInfo | undefined;
  readonly hooked: Hooked;
}

/** Looks at the threads of a process that runs. */
export class Threads {
  readonly #options: ThreadsOptions;
  #stacks: Stacks | undefined;

  constructor(options: ThreadsOptions) {
    this.#options = options;
  }

  /**
   * All threads; of at most so many the stack is walked.
   * @throws RsptraceError if its stacks cannot be walked
   */
  async all(mostWalked: number): Promise<ThreadLook[]> {
    const { pid } = this.#options;
    using memory = memoryOfProcess(pid);
    const looks: ThreadLook[] = [];
    let walked = 0;
    for (const id of entriesOf(`/proc/${pid}/task`)) {
      const folder = `/proc/${pid}/task/${id}`;
      const look = { thread: Number(id), name: textOf(`${folder}/comm`).trim() };
      const place = waitingAt(folder);
      const walks = place !== undefined && memory !== undefined && walked < mostWalked;
      if (walks) walked++;
      const frames = walks ? await this.#walk(memory, place) : [];
      const waits = place !== undefined && waitingAt(folder)?.moment === place.moment;
      looks.push({ ...look, waits, frames: waits ? frames : [] });
    }
    return looks;
  }

  async #walk(memory: MemoryReader, { pc, sp }: WaitingThread): Promise<readonly Frame[]> {
    const { arch, hooked } = this.#options;
    this.#stacks ??= await this.#walker(memory);
    const known = new Map([
      [arch.pc, pc],
      [arch.sp, sp],
    ]);
    return (await this.#stacks.unwind({ register: (name) => known.get(name) }, memory, { hooked })).frames;
  }

  async #walker(memory: MemoryReader): Promise<Stacks> {
    const { pid, elf, arch, debug } = this.#options;
    return new Stacks(elf, arch, debug, (await librariesOfProcess(pid, elf, memory)).loaded);
  }
}

function waitingAt(folder: string): WaitingThread | undefined {
  const place = threadAt(folder);
  return typeof place === 'string' ? undefined : place;
}
