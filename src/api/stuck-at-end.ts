import { type Runtime, stuckTasks } from '../async/tasks/index.js';
import type { Logger } from '../base/logger.js';
import type { FoundPolls } from '../probes/index.js';
import type { RecordOptions } from '../record/index.js';
import { copyTarget } from './task-copy.js';
import { tasksIn, taskView } from './views.js';

/**
 * For findings that only memory shows, deadlocks and lost wakes: copies what a look at tasks needs while the target
 * stands. `runtimes`: those of plug-ins.
 */
export function findStuck(
  logger: Logger,
  runtimes: readonly Runtime[],
  debugFiles: { readonly debugDirs?: readonly string[] | undefined } = {},
): NonNullable<RecordOptions['look']> {
  return async (session, { elf, arch, debug, kinds }) => {
    const polls = kinds.find(({ kind }) => kind.name === 'poll')?.found as FoundPolls | undefined;
    if (!debug || !polls) return async () => [];
    const copy = await copyTarget(session, { elf, debug }, { arch, logger, ...debugFiles });
    return async () => {
      const program = { elf, debug, futures: polls.futures };
      return stuckTasks(await tasksIn(program, await taskView(program, copy), { runtimes, logger }));
    };
  };
}
