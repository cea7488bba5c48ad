// A poll with no other around it is taken for one of a task. If the probe of what is around it was left out, or
// switched off on the way, or if its polls cannot be seen, parts of a task look like tasks.

import type { FutureSet } from '../../../async/futures/index.js';
import { plural, textLines } from '../../../text/index.js';
import { namesLeftOut, type ProbeFact, type SummaryRow, type TaskRow } from '../../../trace/index.js';
import type { SeenFuture } from './coverage.js';
import { holdersOf } from './future-holders.js';

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

/** The line below a table of tasks; empty if all was seen. */
export function partsNote([first, ...others]: readonly string[]): string {
  if (first === undefined) return '';
  const more = others.length === 0 ? '' : ` and ${plural(others.length, 'other Future')}`;
  return textLines([`not all polls of ${first}${more} were seen: what it polls may stand here as a task of its own`]);
}
