// What makes counts lower bounds, and times upper ones: probes that were left out, stops beside probes that need none,
// a ring of records that was full.
import { plural } from '../../text/index.js';
import type { ProbeFact, RecordingFacts, TraceFacts } from './events.js';
import { timeText } from './text-table.js';

/** Those that were asked for and have not seen all hits. */
export function probesLeftOut(probes: readonly ProbeFact[]): readonly ProbeFact[] {
  return probes.filter(({ engine, extra }) => engine === 'none' && extra === undefined);
}

/** What they are on: functions and Futures. Names, because a program may lie elsewhere than in its file. */
export function namesLeftOut(probes: readonly ProbeFact[]): ReadonlySet<string> {
  return new Set(probesLeftOut(probes).flatMap(subjectsOf));
}

/** Those, and if records are missing, all that had no stop: which of these have lost some is not known. */
export function namesBound(
  probes: readonly ProbeFact[],
  { missing = 0, tailLost = false }: Partial<Pick<RecordingFacts, 'missing' | 'tailLost'>> = {},
): ReadonlySet<string> {
  const lossy = missing > 0 || tailLost ? probes.filter(({ engine }) => engine === 'target') : [];
  return new Set([...probesLeftOut(probes), ...lossy].flatMap(subjectsOf));
}

/** The function, or the Future, of each probe at its address. */
export function subjectsOf(probe: ProbeFact): string[] {
  return [probe, ...(probe.others ?? [])].map(({ name, subject = name }) => subject);
}

/** Below a table with rows of such probes, whose counts have a `>=`. */
export const LEFT_OUT_NOTE =
  '>= at least so many: the probe was left out, or switched off on the way, or records of it were lost; the time of calls that are missing counts for their callers';

/** The same where the compiler is the reason. */
export const INLINED_NOTE =
  '>= at least so many: the compiler inlined polls of this Future, and some of those leave no mark, or none of their result';

/** A sentence for people; undefined if no probe was left out. */
export function leftOutText(probes: readonly ProbeFact[]): string | undefined {
  const names = [...namesLeftOut(probes)];
  if (names.length === 0) return undefined;
  return `${plural(names.length, 'probe')} left out, or switched off on the way (${someOf(names)}): counts of them are lower bounds, and their time counts for their callers; rsptrace info says why`;
}

/** A sentence for people; undefined if all were seen. */
function unseenText({ unseen = [] }: Pick<RecordingFacts, 'unseen'> = {}): string | undefined {
  if (unseen.length === 0) return undefined;
  const were =
    unseen.length === 1
      ? 'Future was not seen, because the compiler inlined its'
      : 'Futures were not seen, because the compiler inlined their';
  return `${unseen.length} ${were} polls (${someOf(unseen)}): what they take counts for the Futures around them; --dry-run on the program says why, and what helps`;
}

/** A sentence for people; undefined if there is nothing to say. */
function extraStopsText(facts: TraceFacts | undefined): string | undefined {
  const count = facts?.recording?.stopsBeside;
  if (facts === undefined || count === undefined || facts.recording?.timesAtMost !== undefined) return undefined;
  const names = [...new Set(facts.probes.filter(({ engine }) => engine === 'stop').map(({ name }) => name))];
  const where = names.length === 0 ? '' : ` (${someOf(names)})`;
  return `${plural(count, 'stop')} beside probes that need none${where}: times of calls that a stop is in are too long, by up to milliseconds a stop`;
}

/** How often the ring was found full, and how long the target's harts waited then, all together. */
interface RingWaits {
  readonly ringFull?: number | undefined;
  readonly ringWaitedNs?: number | undefined;
}

/** A sentence for people; undefined if there is nothing to say. */
export function ringFullText({ ringFull, ringWaitedNs }: RingWaits = {}): string | undefined {
  if (!ringFull) return undefined;
  const all = ringWaitedNs ? `, ${timeText(ringWaitedNs)} in all harts or threads` : '';
  const found = `the target waited for room in its ring of records at least ${plural(ringFull, 'time')}${all}`;
  return `${found}: times of calls that a wait is in are too long; fewer probes make waits rarer`;
}

/** What is missing or inexact as the end of the recording knows it, a sentence each. */
export function lossTexts(facts: TraceFacts | undefined): string[] {
  const { recording } = facts ?? {};
  return [
    recording && recording.missing > 0 && `${recording.missing} records that could not be read`,
    recording?.tailLost && "records that were in the guest's memory when it ended",
    recording?.leftOut &&
      `${recording.leftOut} events before its first one, which the flight recorder left out (--last)`,
    recording && recording.foreignHits > 0 && `${recording.foreignHits} times other code came to a probe's address`,
    recording && recording.neverLoaded.length > 0 && `never loaded: ${recording.neverLoaded.join(', ')}`,
    unseenText(recording),
    recording?.timesAtMost && `durations are upper bounds (<), because ${recording.timesAtMost}`,
    extraStopsText(facts),
    ringFullText(recording),
  ].filter((line) => typeof line === 'string');
}

/** Up to three names, and how many more. */
function someOf(names: readonly string[]): string {
  return names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;
}
