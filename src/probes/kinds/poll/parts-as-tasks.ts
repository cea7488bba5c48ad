// A poll with no other around it is taken for one of a task, if the code that makes it is not that of a Future. If the
// probe of what is around it was left out, or switched off on the way, or if its polls cannot be seen, some parts of a
// task look like tasks, and others belong to no known task.

import type { FutureSet } from '../../../async/futures/index.js';
import { plural, textLines } from '../../../text/index.js';
import { namesLeftOut, type ProbeFact, type SummaryRow, type TaskRow, type TaskSummary } from '../../../trace/index.js';
import type { SeenFuture } from './coverage.js';
import { holdersOf } from './task-wrappers.js';

/** The Futures whose polls were not all seen for that reason, in the order of `rows`. */
export function notAllSeen(
  rows: readonly Pick<SummaryRow, 'future' | 'instance'>[],
  probes: readonly ProbeFact[],
): readonly string[] {
  const leftOut = namesLeftOut(probes);
  const unseen = rows.filter(({ future, instance }) => leftOut.has(future) || leftOut.has(instance));
  return [...new Set(unseen.map(({ future }) => future))];
}

/**
 * The Futures whose polls cannot all be seen, and that can hold what has a row as a task. A task that its runtime knows
 * is one for sure.
 */
export function unseenAround(
  futures: FutureSet,
  coverage: readonly SeenFuture[],
  tasks: readonly Pick<TaskRow, 'instance' | 'runtime'>[],
): readonly string[] {
  const unsure = new Set(tasks.flatMap(({ instance, runtime }) => (runtime === null ? [instance] : [])));
  const unseen = coverage.filter(({ seen }) => seen === 'not' || seen === 'lower-bound');
  if (unsure.size === 0 || unseen.length === 0) return [];
  const around = holdersOf(futures, new Set(futures.all.filter(({ instance }) => unsure.has(instance))));
  return unseen.flatMap(({ future }) => (around.has(future) ? [future.future] : []));
}

/** The line below a table of tasks for polls that are in none of its rows; empty if there are none. */
export function noTaskNote({ polls, futures }: TaskSummary['ofNoTask']): string {
  if (polls === 0) return '';
  const of = `${plural(polls, 'poll')} of ${plural(futures.length, 'Future')}`;
  return textLines([`${of} could not be given to a task: no polls of the Futures around them were seen`]);
}

/** The line below a table of tasks; empty if all was seen. */
export function partsNote([first, ...others]: readonly string[]): string {
  if (first === undefined) return '';
  const more = others.length === 0 ? '' : ` and ${plural(others.length, 'other Future')}`;
  return textLines([`not all polls of ${first}${more} were seen: what it polls may stand here as a task of its own`]);
}
