// A poll with no other around it is taken for one of a task. If the probe of what is around it was left out, or
// switched off on the way, parts of a task look like tasks.
import { plural } from '../../../base/plural.js';
import { textLines } from '../../../base/visible.js';
import { namesLeftOut, type ProbeFact, type SummaryRow } from '../../../trace/index.js';

/** The Futures whose polls were not all seen for that reason, in the order of `rows`. */
export function notAllSeen(
  rows: readonly Pick<SummaryRow, 'future' | 'instance'>[],
  probes: readonly ProbeFact[],
): readonly string[] {
  const leftOut = namesLeftOut(probes);
  const unseen = rows.filter(({ future, instance }) => leftOut.has(future) || leftOut.has(instance));
  return [...new Set(unseen.map(({ future }) => future))];
}

/** The line below a table of tasks; empty if all was seen. */
export function partsNote([first, ...others]: readonly string[]): string {
  if (first === undefined) return '';
  const more = others.length === 0 ? '' : ` and ${plural(others.length, 'other Future')}`;
  return textLines([`not all polls of ${first}${more} were seen: what it polls may stand here as a task of its own`]);
}
