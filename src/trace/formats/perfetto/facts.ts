/*
 * What a trace says of itself, as annotations of three instants: `rsptrace` is its first event, `engines` and
 * `recording` come at its end. Written and read back by the same tables.
 */
import { addr } from '../../../base/addr.js';
import type {
  ClockInfo,
  HartInfo,
  OwnTime,
  ProbeFact,
  RecordingFacts,
  TraceFacts,
  TraceInfo,
} from '../../events/events.js';
import { sampleFactsFrom, sampleFactsJson } from '../../events/sample-facts.js';
import { engineTexts } from '../../events/text.js';
import { addressOf } from './read/refs.js';
import type { TrackEvent } from './read/track-event.js';
import type { Annotations } from './write/annotations.js';

/** Of the layout of tracks, names and annotations. */
export const TRACE_VERSION = 3;

/** A member as an annotation: its name, its member, and how it is written. What is undefined is left out. */
type Note<T> = readonly [name: string, member: keyof T, as: 'text' | 'number' | 'flag' | 'mark' | 'list' | 'lines'];

/** The trace's first event. */
interface Heading extends Omit<TraceInfo, 'harts' | 'clock'> {
  readonly version: number;
  /** Its last event is the instant `end`, unless it was cut off. Older traces do not say it. */
  readonly hasEnd: boolean;
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
  ['has_end', 'hasEnd', 'flag'],
  ['ns_per_instruction', 'nanosPerInstruction', 'number'],
];
const noHeading: Flat = {
  ...{ version: 1, program: '', buildId: undefined, arch: '', hasEnd: false },
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
const OWN_TIME = 'own_time_total_ns';

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
  // The last packet of a whole trace is the instant `end`.
  putNotes(into, headingNotes, { ...info, version: TRACE_VERSION, hasEnd: true, clock: name, ...rest });
}

export function headingOf(event: TrackEvent): Heading {
  const flat = takeNotes(notesOf(event), headingNotes, noHeading);
  const { clock: name, resolutionNs, guest, nanosPerInstruction, ...info } = flat;
  return { ...info, clock: { name, resolutionNs, guest, nanosPerInstruction } };
}

export function infoOf({ version: _, hasEnd: __, ...info }: Heading, harts: readonly HartInfo[]): TraceInfo {
  return { ...info, harts };
}

export function putEngines(into: Annotations, facts: TraceFacts): void {
  for (const [probe, engine] of engineTexts(facts)) into.text(probe, engine);
}

export function putRecording(into: Annotations, recording: RecordingFacts, ownTime: OwnTime | undefined): void {
  putNotes(into, recordingNotes, recording);
  const { samples } = recording;
  for (const [name, value] of Object.entries(samples ? sampleFactsJson(samples) : {}))
    into.text(`${SAMPLES}${name}`, String(value));
  if (ownTime) into.text(OWN_TIME, String(ownTime.totalNs));
}

/** What the instants `engines` and `recording` say at the end of a trace; undefined before. */
export class FactsReader {
  facts: TraceFacts | undefined;

  engines({ arguments: values }: TrackEvent): void {
    const probes = values.filter(({ name }) => name !== 'guest time').map(({ name, value }) => probeOf(name, value));
    const ownTime = ownTimeOf(values.find(({ name }) => name === 'guest time')?.value);
    this.facts = { ...this.facts, probes, ownTime };
  }

  recording(event: TrackEvent): void {
    const notes = notesOf(event);
    const recording = takeNotes(notes, recordingNotes, noRecording);
    const samples = sampleFactsFrom((name) => Number(notes(SAMPLES + name) ?? 0));
    const { probes = [], ownTime } = this.facts ?? {};
    const total = notes(OWN_TIME);
    this.facts = {
      probes,
      ownTime: ownTime && total !== undefined ? { ...ownTime, totalNs: Number(total) } : ownTime,
      recording: notes(`${SAMPLES}wanted`) === undefined ? recording : { ...recording, samples },
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
  const whole = address === undefined ? name : name.slice(0, at);
  // `work::level3 in work::chain`: the file has no other place for the subject.
  const [subject] = whole.split(' in ', 1);
  return {
    name: whole,
    ...(subject === whole ? {} : { subject }),
    address: address ?? addr(0n),
    engine,
    why: colon < 0 ? undefined : text.slice(colon + 2),
    extra,
  };
}

function ownTimeOf(text: string | undefined): OwnTime | undefined {
  const [, least, most = least] = /^an event took (\d+)(?: to (\d+))? ns/.exec(text ?? '') ?? [];
  return least === undefined ? undefined : { leastNs: Number(least), mostNs: Number(most), totalNs: 0 };
}
