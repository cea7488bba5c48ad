// Stops beside probes that need none: what they do to times.
import { plural } from '../../base/plural.js';
import type { TraceFacts } from './events.js';

/** A sentence for people; undefined if there is nothing to say. */
export function stopsBesideText(facts: TraceFacts | undefined): string | undefined {
  const count = facts?.recording?.stopsBeside;
  if (facts === undefined || count === undefined) return undefined;
  const names = [...new Set(facts.probes.filter(({ engine }) => engine === 'stop').map(({ name }) => name))];
  const some = names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;
  const where = names.length === 0 ? '' : ` (${some})`;
  return `${plural(count, 'stop')} beside probes that need none${where}: times of calls that a stop is in are too long, by up to milliseconds a stop`;
}
