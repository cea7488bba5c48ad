import { addr } from '../../../../base/addr.js';
import type { HartInfo, OwnTime, ProbeFact, RecordingFacts, TraceFacts, TraceInfo } from '../../../events/events.js';
import { sampleFactsFrom } from '../../../events/sample-facts.js';
import { addressOf } from './refs.js';
import type { TrackEvent } from './track-events.js';

/** The trace's first event, the instant `rsptrace`. */
export interface Heading extends Omit<TraceInfo, 'harts'> {
  readonly version: number;
  /** Its last event is the instant `end`, unless it was cut off. Older traces do not tell it. */
  readonly hasEnd: boolean;
}

export function headingOf({ arguments: values }: TrackEvent): Heading {
  const note = (name: string): string | undefined => values.find((one) => one.name === name)?.value;
  const perInstruction = note('ns_per_instruction');
  return {
    version: Number(note('version') ?? 1),
    hasEnd: note('has_end') === 'true',
    program: note('program') ?? '',
    buildId: note('build_id'),
    arch: note('arch') ?? '',
    ...(note('process') === 'true' ? { isProcess: true } : {}),
    clock: {
      name: note('clock') ?? '',
      resolutionNs: Number(note('clock_resolution_ns') ?? 1),
      guest: note('guest_clock') === 'true',
      ...(perInstruction === undefined ? {} : { nanosPerInstruction: Number(perInstruction) }),
    },
  };
}

export function infoOf({ version: _, hasEnd: __, ...info }: Heading, harts: readonly HartInfo[]): TraceInfo {
  return { ...info, harts };
}

/** What the instants `engines` and `recording` tell at the end of a trace; undefined before. */
export class FactsReader {
  facts: TraceFacts | undefined;

  engines({ arguments: values }: TrackEvent): void {
    const probes = values.filter(({ name }) => name !== 'guest time').map(({ name, value }) => probeOf(name, value));
    const ownTime = ownTimeOf(values.find(({ name }) => name === 'guest time')?.value);
    this.facts = { ...this.facts, probes, ownTime };
  }

  recording({ arguments: values }: TrackEvent): void {
    const note = (name: string): string | undefined => values.find((one) => one.name === name)?.value;
    const number = (name: string): number => Number(note(name) ?? 0);
    const recording: RecordingFacts = {
      end: note('end') ?? '',
      stub: note('stub'),
      events: number('events'),
      stops: number('stops'),
      records: number('records'),
      missing: number('missing'),
      foreignHits: number('foreign_hits'),
      neverLoaded: (note('never_loaded') ?? '').split(', ').filter((text) => text !== ''),
      tailLost: note('tail_lost') === 'true',
      ...(note('left_out') === undefined ? {} : { leftOut: number('left_out') }),
      ...(note('times_at_most') === undefined ? {} : { timesAtMost: note('times_at_most') }),
      ...(note('stops_beside') === undefined ? {} : { stopsBeside: number('stops_beside') }),
      ...(note('ring_full') === undefined ? {} : { ringFull: number('ring_full') }),
      ...(note('ring_waited_ns') === undefined ? {} : { ringWaitedNs: number('ring_waited_ns') }),
      ...(note('samples_wanted') === undefined
        ? {}
        : { samples: sampleFactsFrom((name) => number(`samples_${name}`)) }),
    };
    const { probes = [], ownTime } = this.facts ?? {};
    const total = note('own_time_total_ns');
    this.facts = {
      probes,
      ownTime: ownTime && total !== undefined ? { ...ownTime, totalNs: Number(total) } : ownTime,
      recording,
    };
  }
}

const engines = { 'without stops': 'target', stops: 'stop', 'left out': 'none' } as const;

/** `labkern::work::deep0 @0x80200000`: `stops: no memory for trampolines`, `left out (wakes): ...`. */
function probeOf(name: string, text: string): ProbeFact {
  const at = name.lastIndexOf(' @0x');
  const address = at < 0 ? undefined : addressOf(name.slice(at + 2));
  const colon = text.indexOf(': ');
  const [, words, extra] = /^(.*?)(?: \((\w+)\))?$/.exec(colon < 0 ? text : text.slice(0, colon)) ?? [];
  const engine = engines[words as keyof typeof engines] ?? 'stop';
  return {
    name: address === undefined ? name : name.slice(0, at),
    address: address ?? addr(0n),
    engine,
    why: colon < 0 ? undefined : text.slice(colon + 2),
    ...(extra === undefined ? {} : { extra }),
  };
}

function ownTimeOf(text: string | undefined): OwnTime | undefined {
  const [, least, most = least] = /^an event took (\d+)(?: to (\d+))? ns/.exec(text ?? '') ?? [];
  return least === undefined ? undefined : { leastNs: Number(least), mostNs: Number(most), totalNs: 0 };
}
