import type { Addr } from '../../../../base/addr.js';
import { hex } from '../../../../base/addr.js';
import { type Process, type ProcessRef, processName, processText } from '../../../events/processes.js';
import { CHILD_ORDERING, EVENT, TRACK } from '../fields.js';
import type { PerfettoSequence } from './packets.js';

/** Above those of threads, and below those of a profile's harts. Even: of each the process, then its tasks. */
const FIRST_PROCESS = 0x6000_0000;
const TASKS_RANK = 0x7fff_ffff;

const trackOf = ({ number }: ProcessRef): number => FIRST_PROCESS + 4 * number;
const tasksOf = (process: ProcessRef): number => trackOf(process) + 2;

/** Describes the processes of a kernel, each with its stacks and tasks: viewers show what is of one together. */
export class ProcessTracks {
  readonly #sequence: PerfettoSequence;
  readonly #bySpace = new Map<Addr | undefined, ProcessRef>();
  /** Those whose group of tasks is described. */
  readonly #withTasks = new Set<ProcessRef>();

  constructor(sequence: PerfettoSequence) {
    this.#sequence = sequence;
  }

  /** Its name is known at the end, and readers take the first one. */
  add(process: ProcessRef): void {
    this.#bySpace.set(process.space, process);
    this.#sequence.descriptor({
      uuid: trackOf(process),
      name: processText(process.space),
      process: { pid: process.number },
      childOrdering: CHILD_ORDERING.explicit,
    });
  }

  /** The track around a stack. */
  around(space: Addr | undefined): number {
    const process = this.#bySpace.get(space);
    return process ? trackOf(process) : TRACK.process;
  }

  /** The track around a task. */
  aroundTask(space: Addr | undefined): number {
    const process = this.#bySpace.get(space);
    if (!process) return TRACK.tasks;
    if (!this.#withTasks.has(process)) {
      this.#withTasks.add(process);
      const order = { siblingOrderRank: TASKS_RANK, childOrdering: CHILD_ORDERING.chronological };
      this.#sequence.descriptor({ uuid: tasksOf(process), parentUuid: trackOf(process), name: 'tasks', ...order });
    }
    return tasksOf(process);
  }

  /** Names, and a slice from the first to the last that was seen of each. */
  end(all: readonly Process[]): void {
    for (const process of all) {
      const { number, space, programs, first, last } = process;
      const name = processName(process);
      const processLabels = [`page tables at ${hex(space)}`, ...[...programs].map((program) => `program ${program}`)];
      this.#sequence.descriptor({
        uuid: trackOf(process),
        name: processText(space),
        process: { pid: number, processName: name, processLabels },
        childOrdering: CHILD_ORDERING.explicit,
      });
      const body = this.#sequence.body({ category: 'process', name });
      this.#sequence.event(EVENT.sliceBegin, trackOf(process), first, body);
      this.#sequence.event(EVENT.sliceEnd, trackOf(process), last);
    }
  }
}
