import type { OwnTime, RecordingFacts, TraceFacts } from '../../events/events.js';
import type { TraceRead } from '../../formats/read/read-trace.js';

/**
 * What is known of several recordings that become one trace: nothing that one of them has lost is lost again. `shifts`:
 * nanoseconds that the times of each were made later by.
 */
export function mergedFacts(reads: readonly TraceRead[], shifts: readonly number[]): TraceFacts {
  const recordings = reads.flatMap(({ facts }, index) =>
    facts?.recording ? shifted(facts.recording, shifts[index] ?? 0) : [],
  );
  const times = reads.flatMap(({ facts }) => facts?.ownTime ?? []);
  return {
    probes: reads.flatMap(({ facts }) => facts?.probes ?? []),
    ownTime: times.length > 0 ? mergedTime(times) : undefined,
    recording: recordings.length > 0 ? mergedRecording(recordings) : undefined,
    isCut: reads.some(({ cut }) => cut !== undefined),
  };
}

function shifted(facts: RecordingFacts, by: number): RecordingFacts {
  return { ...facts, stoppedAt: facts.stoppedAt?.map((time) => String(Number(time) + by)) };
}

/** Between texts that differ. */
const separators: Partial<Record<keyof RecordingFacts, string>> = { end: ', ', stub: ' + ', timesAtMost: '; ' };

/** Numbers are added up, and texts and lists have what any of them has. */
function mergedRecording(all: readonly RecordingFacts[]): RecordingFacts {
  const keys = [...new Set(all.flatMap((facts) => Object.keys(facts)))] as (keyof RecordingFacts)[];
  const members = keys.map((key) => [key, mergedMember(all, key)]);
  const sampled = all.flatMap(({ samples }) => samples ?? []);
  // Rates of several do not add up to one.
  return { ...Object.fromEntries(members), samples: sampled.length === 1 ? sampled[0] : undefined };
}

function mergedMember(all: readonly RecordingFacts[], key: keyof RecordingFacts): unknown {
  const values: unknown[] = all.flatMap((facts) => (facts[key] as unknown[] | undefined) ?? []);
  const distinct = [...new Set(values)];
  if (all.some((facts) => Array.isArray(facts[key]))) return distinct;
  if (values.length === 0) return undefined;
  if (values.every((value) => typeof value === 'number')) return sum(values);
  return values.every((value) => typeof value === 'boolean') ? values.includes(true) : distinct.join(separators[key]);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function mergedTime(times: readonly OwnTime[]): OwnTime {
  return {
    leastNs: Math.min(...times.map(({ leastNs }) => leastNs)),
    mostNs: Math.max(...times.map(({ mostNs }) => mostNs)),
    totalNs: sum(times.map(({ totalNs }) => totalNs)),
  };
}
