/*
 * What a trace says of itself, as annotations of three instants: `rsptrace` is its first event, `engines` and
 * `recording` come at its end. Written and read back by the same tables.
 */
import { hex } from '../../../base/addr.js';
import { number, parsedAs, shaped } from '../../../base/json-shape.js';
import type {
  ClockInfo,
  HartInfo,
  OwnTime,
  ProbeFact,
  RecordingFacts,
  TraceFacts,
  TraceInfo,
} from '../../events/events.js';
import { probeFrom, probeJson, savedProbe } from '../../events/facts.js';
import { sampleFactsFrom, sampleFactsJson } from '../../events/sample-facts.js';
import { Damage } from '../read/fields.js';
import { allArguments, type TrackEvent } from './read/track-event.js';
import type { Annotations } from './write/annotations.js';

/** Of the layout of tracks, names and annotations. */
export const TRACE_VERSION = 4;

/** A member as an annotation: its name, its member, and how it is written. What is undefined is left out. */
type Note<T> = readonly [name: string, member: keyof T, as: 'text' | 'number' | 'flag' | 'mark' | 'list' | 'lines'];

/** The trace's first event. */
interface Heading extends Omit<TraceInfo, 'harts' | 'clock'> {
  readonly version: number;
  readonly clock: ClockInfo;
}

/** A heading without members of members. */
interface Flat extends Omit<Heading, 'clock'> {
  readonly clock: string;
  readonly resolutionNs: number;
  readonly guest: boolean;
  readonly nanosPerInstruction?: number | undefined;
}

/** `mark`: a flag that is written where it holds. */
const headingNotes: readonly Note<Flat>[] = [
  ['version', 'version', 'number'],
  ['program', 'program', 'text'],
  ['build_id', 'buildId', 'text'],
  ['arch', 'arch', 'text'],
  ['process', 'isProcess', 'mark'],
  ['clock', 'clock', 'text'],
  ['clock_resolution_ns', 'resolutionNs', 'number'],
  ['guest_clock', 'guest', 'flag'],
  ['ns_per_instruction', 'nanosPerInstruction', 'number'],
];
const noHeading: Flat = {
  ...{ version: 0, program: '', buildId: undefined, arch: '' },
  ...{ clock: '', resolutionNs: 1, guest: false },
};

const recordingNotes: readonly Note<RecordingFacts>[] = [
  ['end', 'end', 'text'],
  ['stub', 'stub', 'text'],
  ['events', 'events', 'number'],
  ['stops', 'stops', 'number'],
  ['records', 'records', 'number'],
  ['missing', 'missing', 'number'],
  ['foreign_hits', 'foreignHits', 'number'],
  ['never_loaded', 'neverLoaded', 'lines'],
  ['tail_lost', 'tailLost', 'flag'],
  ['unseen', 'unseen', 'lines'],
  ['left_out', 'leftOut', 'number'],
  ['records_clock', 'recordsClock', 'text'],
  ['times_at_most', 'timesAtMost', 'text'],
  ['stops_beside', 'stopsBeside', 'number'],
  ['stopped_at', 'stoppedAt', 'list'],
  ['ring_full', 'ringFull', 'number'],
  ['ring_waited_ns', 'ringWaitedNs', 'number'],
];
const noRecording: RecordingFacts = {
  ...{ end: '', stub: undefined, events: 0, stops: 0, records: 0, missing: 0, foreignHits: 0 },
  ...{ neverLoaded: [], tailLost: false },
};
const SAMPLES = 'samples_';
const OWN_TIME = 'guest time';
const savedOwnTime = shaped<OwnTime>({ leastNs: number, mostNs: number, totalNs: number });

// A name may have commas.
const separators = { list: ', ', lines: '\n' } as const;

function putNotes<T>(into: Annotations, notes: readonly Note<T>[], from: T): void {
  for (const [name, member, as] of notes) {
    const value = from[member];
    if (as === 'flag' || (as === 'mark' && value === true)) into.bool(name, value === true);
    else if (as === 'list' || as === 'lines') {
      const list = (value ?? []) as readonly string[];
      if (list.length > 0) into.text(name, list.join(separators[as]));
    } else if (as !== 'mark' && value !== undefined) into.text(name, String(value));
  }
}

type Notes = (name: string) => string | undefined;

function notesOf({ arguments: values }: TrackEvent): Notes {
  return (name) => values.find((one) => one.name === name)?.value;
}

/** The members that have an annotation, and others as they are in `none`. */
function takeNotes<T>(notes: Notes, table: readonly Note<T>[], none: T): T {
  const found = table.flatMap(([name, member, as]) => {
    const text = notes(name);
    if (text === undefined) return [];
    const list = as === 'list' || as === 'lines' ? text.split(separators[as]).filter((part) => part !== '') : undefined;
    return [[member, list ?? (as === 'text' ? text : as === 'number' ? Number(text) : text === 'true')]];
  });
  return { ...none, ...Object.fromEntries(found) };
}

export function putHeading(into: Annotations, { clock, ...info }: TraceInfo): void {
  const { name, ...rest } = clock;
  putNotes(into, headingNotes, { ...info, version: TRACE_VERSION, clock: name, ...rest });
}

export function headingOf(event: TrackEvent): Heading {
  const flat = takeNotes(notesOf(event), headingNotes, noHeading);
  const { clock: name, resolutionNs, guest, nanosPerInstruction, ...info } = flat;
  return { ...info, clock: { name, resolutionNs, guest, nanosPerInstruction } };
}

export function infoOf({ version: _, ...info }: Heading, harts: readonly HartInfo[]): TraceInfo {
  return { ...info, harts };
}

/** Instances of one generic function share a name, which is to be one annotation's: their addresses follow it. */
export function putEngines(into: Annotations, { probes, ownTime }: TraceFacts): void {
  const names = new Set<string>();
  for (const probe of probes) {
    const name = names.has(probe.name) ? `${probe.name} @${hex(probe.address)}` : probe.name;
    names.add(probe.name);
    // What allowed a patch is asked of `doctor`, and as long as all else of a trace of thousands of functions.
    into.json(name, { ...probeJson(probe), proof: undefined });
  }
  if (ownTime) into.json(OWN_TIME, ownTime);
}

export function putRecording(into: Annotations, recording: RecordingFacts): void {
  putNotes(into, recordingNotes, recording);
  const { samples } = recording;
  for (const [name, value] of Object.entries(samples ? sampleFactsJson(samples) : {}))
    into.text(`${SAMPLES}${name}`, String(value));
}

/** What the instants `engines` and `recording` say at the end of a trace; undefined before. */
export class FactsReader {
  facts: TraceFacts | undefined;

  engines(event: TrackEvent): void {
    const probes: ProbeFact[] = [];
    let ownTime: OwnTime | undefined;
    for (const { name, value } of allArguments(event)) {
      const probe = parsedAs(value, savedProbe);
      if (probe) probes.push(probeFrom(probe));
      else if (name === OWN_TIME) ownTime = parsedAs(value, savedOwnTime);
      if (!probe && !ownTime) throw new Damage(`its last events have no fact of ${name}`);
    }
    this.facts = { ...this.facts, probes, ownTime };
  }

  recording(event: TrackEvent): void {
    const notes = notesOf(event);
    const recording = takeNotes(notes, recordingNotes, noRecording);
    const samples = sampleFactsFrom((name) => Number(notes(SAMPLES + name) ?? 0));
    this.facts = {
      probes: this.facts?.probes ?? [],
      ownTime: this.facts?.ownTime,
      recording: notes(`${SAMPLES}wanted`) === undefined ? recording : { ...recording, samples },
    };
  }
}
