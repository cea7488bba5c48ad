// Probes that were left out: from the begin, or switched off on the way. What a trace has of them is a lower bound.
import { plural } from '../../base/plural.js';
import type { ProbeFact } from './events.js';

/** Those that were asked for and have not seen all hits. */
export function probesLeftOut(probes: readonly ProbeFact[]): readonly ProbeFact[] {
  return probes.filter(({ engine, extra }) => engine === 'none' && extra === undefined);
}

/** What they are on: functions and Futures. Names, because a program may lie elsewhere than in its file. */
export function namesLeftOut(probes: readonly ProbeFact[]): ReadonlySet<string> {
  return new Set(probesLeftOut(probes).map(subjectOf));
}

/** The function, or the Future. */
export function subjectOf({ name, subject = name }: ProbeFact): string {
  return subject;
}

/** Below a table with rows of such probes, whose counts have a `>=`. */
export const LEFT_OUT_NOTE =
  '>= at least so many: the probe was left out, or switched off on the way; the time of calls that are missing counts for their callers';

/** The same where the compiler is the reason. */
export const INLINED_NOTE =
  '>= at least so many: the compiler inlined polls of this Future, and some of those leave no mark';

/** A sentence for people; undefined if no probe was left out. */
export function leftOutText(probes: readonly ProbeFact[]): string | undefined {
  const names = [...namesLeftOut(probes)];
  if (names.length === 0) return undefined;
  const some = names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;
  return `${plural(names.length, 'probe')} left out, or switched off on the way (${some}): counts of them are lower bounds, and their time counts for their callers; rsptrace info says why`;
}
