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

function mergedRecording(all: readonly RecordingFacts[]): RecordingFacts {
  const stubs = distinct(all.flatMap(({ stub }) => stub ?? []));
  const whys = distinct(all.flatMap(({ timesAtMost }) => timesAtMost ?? []));
  const stoppedAt = all.flatMap((facts) => facts.stoppedAt ?? []);
  const sampled = all.filter(({ samples }) => samples !== undefined);
  return {
    end: distinct(all.map(({ end }) => end)).join(', '),
    stub: stubs.length > 0 ? stubs.join(' + ') : undefined,
    events: sum(all, 'events') ?? 0,
    stops: sum(all, 'stops') ?? 0,
    records: sum(all, 'records') ?? 0,
    missing: sum(all, 'missing') ?? 0,
    foreignHits: sum(all, 'foreignHits') ?? 0,
    neverLoaded: distinct(all.flatMap(({ neverLoaded }) => neverLoaded)),
    tailLost: all.some(({ tailLost }) => tailLost),
    leftOut: sum(all, 'leftOut'),
    timesAtMost: whys.length > 0 ? whys.join('; ') : undefined,
    stopsBeside: sum(all, 'stopsBeside'),
    ...(stoppedAt.length > 0 ? { stoppedAt } : {}),
    ringFull: sum(all, 'ringFull'),
    ringWaitedNs: sum(all, 'ringWaitedNs'),
    // Rates of several do not add up to one.
    samples: sampled.length === 1 ? sampled[0]?.samples : undefined,
  };
}

/** Undefined if none has it. */
function sum(
  all: readonly RecordingFacts[],
  key:
    | 'events'
    | 'stops'
    | 'records'
    | 'missing'
    | 'foreignHits'
    | 'leftOut'
    | 'stopsBeside'
    | 'ringFull'
    | 'ringWaitedNs',
): number | undefined {
  const known = all.flatMap((facts) => facts[key] ?? []);
  return known.length > 0 ? known.reduce((total, each) => total + each, 0) : undefined;
}

function mergedTime(times: readonly OwnTime[]): OwnTime {
  return {
    leastNs: Math.min(...times.map(({ leastNs }) => leastNs)),
    mostNs: Math.max(...times.map(({ mostNs }) => mostNs)),
    totalNs: times.reduce((total, { totalNs }) => total + totalNs, 0),
  };
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
