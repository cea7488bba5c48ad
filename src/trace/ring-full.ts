// A ring of records that was full, so that the target waited: what that does to times.
import { plural } from '../base/plural.js';

/** A sentence for people; undefined if there is nothing to say. `times`: how often the ring was found full. */
export function ringFullText(times: number | undefined): string | undefined {
  if (!times) return undefined;
  const found = `the target waited for room in its ring of records at least ${plural(times, 'time')}`;
  return `${found}: times of calls that a wait is in are too long; fewer probes, or --threshold, make waits rarer`;
}
