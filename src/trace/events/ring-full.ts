// A ring of records that was full, so that the target waited: what that does to times.
import { plural } from '../../base/plural.js';
import { timeText } from './text-table.js';

/** How often the ring was found full, and how long the target's harts waited then, all together. */
export interface RingWaits {
  readonly ringFull?: number | undefined;
  readonly ringWaitedNs?: number | undefined;
}

/** A sentence for people; undefined if there is nothing to say. */
export function ringFullText({ ringFull, ringWaitedNs }: RingWaits = {}): string | undefined {
  if (!ringFull) return undefined;
  const all = ringWaitedNs ? `, ${timeText(ringWaitedNs)} in all harts or threads` : '';
  const found = `the target waited for room in its ring of records at least ${plural(ringFull, 'time')}${all}`;
  return `${found}: times of calls that a wait is in are too long; fewer probes, or --threshold, make waits rarer`;
}
