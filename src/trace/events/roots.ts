// What roots are: tasks, or parts of tasks that are not known.

import { inSpace } from '../../base/address-map.js';
import type { Cancelled, RootRef, TraceEvent } from './events.js';

/** The key of a root's place. A part of a task that is not known may lie where another task does. */
export function placeOf({ address, space, isPart }: Pick<RootRef, 'address' | 'space' | 'isPart'>): bigint {
  const place = inSpace(address, space);
  return isPart ? ~place : place;
}

/** Whether it is of a part of a task that is not known. */
export function isOfPart(event: TraceEvent): boolean {
  return 'root' in event && event.root?.isPart === true;
}

/** Whether a Future is a task's own: with it the task is over. */
export function isOfTask({ root, future, address }: Pick<Cancelled, 'root' | 'future' | 'address'>): boolean {
  return root !== undefined && !root.isPart && root.address === address && root.future.key === future.key;
}
